"""A picture of a generation: what was sampled, forced and healed, and what was allowed where.

    report = GenerationReport(record=True)  # of ffwd.adapters.transformers
    model.generate(**prompt, custom_generate=fast_forward_generate, grammar=grammar, report=report)
    report.recordings[0].save("generation.html")

`replay` makes one of a text, without a model, and a loop of one's own makes one with a `Recorder`.
A recording shows itself in notebooks, and `explore` is the page of `ffwd play` there.
"""

from ffwd.view.explore import explore as explore
from ffwd.view.recorder import MOST_CANDIDATES as MOST_CANDIDATES
from ffwd.view.recorder import Recorder as Recorder
from ffwd.view.recording import Allowed as Allowed
from ffwd.view.recording import Candidate as Candidate
from ffwd.view.recording import Kind as Kind
from ffwd.view.recording import Recording as Recording
from ffwd.view.recording import Step as Step
from ffwd.view.recording import StepTime as StepTime
from ffwd.view.replay import replay as replay
from ffwd.view.states import GraphEdge as GraphEdge
from ffwd.view.states import GraphState as GraphState
from ffwd.view.states import StateGraph as StateGraph
from ffwd.view.states import state_graph as state_graph
