"""Names, things and numbers, drawn at random."""

import random

_ONSETS = ("B", "D", "F", "G", "H", "J", "K", "L", "M", "N", "P", "R", "S", "T", "V", "W", "Z")
_VOWELS = "aeiou"
_ENDINGS = ("", "", "n", "r", "s", "l", "t")

FIRST_NAMES = (
    "Ada", "Alan", "Alice", "Amir", "Anna", "Barbara", "Ben", "Bob", "Carla", "Carol", "Chen",
    "Clara", "Daniel", "David", "Diana", "Donald", "Edsger", "Elena", "Emma", "Eric", "Eva",
    "Fatima", "Felix", "Frances", "Frank", "George", "Grace", "Hana", "Hedy", "Henry", "Ivan",
    "Jack", "James", "Jane", "John", "Julia", "Karl", "Kate", "Laura", "Leo", "Linda", "Lucas",
    "Maria", "Mark", "Martin", "Mary", "Max", "Mia", "Mohamed", "Nina", "Noah", "Olga", "Oscar",
    "Paul", "Peter", "Robert", "Rosa", "Sara", "Sofia", "Susan", "Thomas", "Tim", "Tom", "Yuki",
)  # fmt: skip
CITIES = (
    "Athens", "Berlin", "Boston", "Cairo", "Chicago", "Delhi", "Dublin", "Geneva", "Hamburg",
    "Kyoto", "Lima", "Lisbon", "London", "Madrid", "Milan", "Oslo", "Paris", "Prague", "Rome",
    "Seoul", "Sydney", "Tokyo", "Toronto", "Vienna", "Warsaw", "Zurich",
)  # fmt: skip
COLORS = ("red", "blue", "green", "black", "white", "yellow", "grey", "brown")
THINGS = (
    "kettle", "lamp", "chair", "table", "bicycle", "camera", "clock", "coat", "guitar", "helmet",
    "keyboard", "mirror", "phone", "radio", "rug", "shelf", "tent", "toaster", "umbrella", "vase",
)  # fmt: skip
JOBS = (
    "teacher", "doctor", "baker", "pilot", "lawyer", "nurse", "farmer", "engineer", "painter",
    "cook",
)  # fmt: skip
EVENTS = ("concert", "fair", "meeting", "lecture", "party", "workshop", "reading", "race")
CURRENCIES = ("EUR", "USD", "GBP", "CHF")


class Words:
    """Random words of texts, from one source of random numbers."""

    def __init__(self, source: random.Random) -> None:
        self.source = source

    def invented(self) -> str:
        """Return a name of two or three syllables that hardly any other text has."""
        count = self.source.choice((2, 2, 3))
        syllables = [
            self.source.choice(_ONSETS) + self.source.choice(_VOWELS) for _ in range(count)
        ]
        word = "".join(syllables) + self.source.choice(_ENDINGS)
        return word.capitalize()

    def first_name(self) -> str:
        """Return a given name, every other one of them invented."""
        if self.source.random() < 0.5:
            return self.source.choice(FIRST_NAMES)
        return self.invented()

    def name(self) -> str:
        """Return a person's name, with a family name or without."""
        if self.source.random() < 0.6:
            return self.first_name()
        return f"{self.first_name()} {self.invented()}"

    def city(self) -> str:
        """Return a city, more often invented than not."""
        if self.source.random() < 0.35:
            return self.source.choice(CITIES)
        return self.invented()

    def company(self) -> str:
        """Return a company's name."""
        return f"{self.invented()} {self.source.choice(('Ltd', 'Inc', 'AG', 'Group'))}"

    def color(self) -> str:
        """Return a colour."""
        return self.source.choice(COLORS)

    def thing(self) -> str:
        """Return an article, such as `blue kettle`."""
        return f"{self.color()} {self.source.choice(THINGS)}"

    def number(self, digits: int) -> int:
        """Return a number with exactly this many digits."""
        return self.source.randrange(10 ** (digits - 1), 10**digits)

    def amount(self) -> int | float:
        """Return a sum of money, whole or with two places of which the last is not zero."""
        whole = self.number(self.source.choice((2, 3)))
        if self.source.random() < 0.5:
            return whole
        return float(f"{whole}.{self.source.randrange(10)}{self.source.randrange(1, 10)}")

    def date(self) -> str:
        """Return a day, as RFC 3339 writes it."""
        source = self.source
        year, month, day = (
            source.randrange(2020, 2030),
            source.randrange(1, 13),
            source.randrange(1, 29),
        )
        return f"{year}-{month:02}-{day:02}"

    def time(self) -> str:
        """Return a time of the day."""
        return f"{self.source.randrange(7, 23):02}:{self.source.choice(('00', '15', '30', '45'))}"
