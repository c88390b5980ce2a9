//! Which vertices can begin with themselves.

use super::graph::{Graph, Vertex, VertexId};

/// The first parts of a vertex.
pub(super) fn corners(graph: &Graph, vertex: VertexId) -> &[VertexId] {
    match &graph.vertices[vertex.index()] {
        Vertex::Seq(parts) => {
            let fixed = parts.iter().position(|part| !graph.nullable[part.index()]);
            &parts[..fixed.map_or(parts.len(), |fixed| fixed + 1)]
        }
        other => other.children(),
    }
}

/// For each vertex the number of the set of vertices that it can begin with and that can begin with
/// it; `None` where it cannot begin with itself.
pub fn components(graph: &Graph) -> Vec<Option<u32>> {
    let count = graph.vertices.len();
    let is_live = |vertex: VertexId| graph.nonempty[vertex.index()];
    let mut found = Components {
        index: vec![UNSEEN; count],
        low: vec![0; count],
        component: vec![None; count],
        stack: Vec::new(),
        next_index: 0,
        next_component: 0,
    };
    // Vertices that have been entered and not left, and which of their corners comes next.
    let mut path: Vec<(usize, usize)> = Vec::new();
    for root in 0..count {
        if found.index[root] != UNSEEN || !is_live(VertexId(root as u32)) {
            continue;
        }
        found.enter(root);
        path.push((root, 0));
        while let Some((vertex, place)) = path.pop() {
            let children = corners(graph, VertexId(vertex as u32));
            let Some(&child) = children.get(place) else {
                let itself = children.iter().any(|child| child.index() == vertex);
                found.leave(vertex, itself);
                if let Some(&(parent, _)) = path.last() {
                    found.low[parent] = found.low[parent].min(found.low[vertex]);
                }
                continue;
            };
            path.push((vertex, place + 1));
            if !is_live(child) {
                continue;
            }
            let child = child.index();
            if found.index[child] == UNSEEN {
                found.enter(child);
                path.push((child, 0));
            } else {
                found.low[vertex] = found.low[vertex].min(found.index[child]);
            }
        }
    }
    found.component
}

const UNSEEN: u32 = u32::MAX;
/// Marks a vertex whose set is complete.
const DONE: u32 = u32::MAX - 1;

/// Tarjan's algorithm.
struct Components {
    index: Vec<u32>,
    low: Vec<u32>,
    component: Vec<Option<u32>>,
    stack: Vec<usize>,
    next_index: u32,
    next_component: u32,
}

impl Components {
    fn enter(&mut self, vertex: usize) {
        self.index[vertex] = self.next_index;
        self.low[vertex] = self.next_index;
        self.next_index += 1;
        self.stack.push(vertex);
    }

    fn leave(&mut self, vertex: usize, itself: bool) {
        if self.low[vertex] != self.index[vertex] {
            return;
        }
        let from = self.stack.iter().rposition(|&member| member == vertex).unwrap_or(0);
        let members = self.stack.split_off(from);
        let recursive = members.len() > 1 || itself;
        for member in members {
            self.index[member] = DONE;
            self.low[member] = DONE;
            if recursive {
                self.component[member] = Some(self.next_component);
            }
        }
        self.next_component += u32::from(recursive);
    }
}
