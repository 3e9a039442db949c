"""Small talk, facts and short stories: what makes the pair answer a plain prompt sensibly."""

# ruff: noqa: SIM905 - a pool of words reads better as a line of words

from random import Random

from deploy.models.corpus import words as w
from deploy.models.corpus.example import Chat, Example, Plain, Turn

_CAPITALS = dict(
    pair.split(":")
    for pair in (
        "Germany:Berlin France:Paris Spain:Madrid Norway:Oslo Italy:Rome Austria:Vienna "
        "Portugal:Lisbon Ireland:Dublin Finland:Helsinki Poland:Warsaw Greece:Athens "
        "Japan:Tokyo India:Delhi Egypt:Cairo Kenya:Nairobi Peru:Lima Colombia:Bogota "
        "Cuba:Havana China:Beijing Canada:Ottawa"
    ).split()
)
_TALK = (
    (
        ("Hello!", "Hi there.", "Good morning.", "Hey!"),
        ("Hello! How can I help you?", "Hi! What can I do for you?"),
    ),
    (("How are you?", "How is it going?"), ("I am well, thank you. What can I do for you?",)),
    (
        ("What can you do?", "How can you help me?", "What are you good at?"),
        (
            "I extract JSON from text, edit texts, fill gaps in code, "
            "plan actions and solve small sums.",
        ),
    ),
    (("Who are you?", "What is your name?"), ("I am a small demo model that Braid serves.",)),
    (("Thank you!", "Thanks a lot.", "Thanks!"), ("You are welcome!", "Gladly.")),
    (("Goodbye.", "Bye!", "See you."), ("Goodbye!", "See you soon!")),
    (
        ("What is a diffusion language model?", "Explain diffusion language models."),
        ("It writes a block of masked tokens and fills in several of them at each step.",),
    ),
    (
        ("What is an autoregressive model?", "Explain autoregressive models."),
        ("It writes one token at a time, each from all tokens before it.",),
    ),
    (
        ("What is gRPC?", "Explain gRPC."),
        ("gRPC calls functions of another process over HTTP/2, with messages in protobuf.",),
    ),
    (
        ("What is etcd?", "Explain etcd."),
        ("etcd is a key-value store that keeps its replicas consistent.",),
    ),
)
_SYSTEMS = (
    "You are a helpful assistant.",
    "Answer briefly.",
    "You are friendly.",
    "Be short and polite.",
)


def _exchange(rng: Random) -> tuple[str, str]:
    """One question and its answer."""
    draw = rng.random()
    if draw < 0.5:
        questions, answers = rng.choice(_TALK)
        return rng.choice(questions), rng.choice(answers)
    if draw < 0.8:
        country, city = rng.choice(list(_CAPITALS.items()))
        question = rng.choice(
            (
                f"What is the capital of {country}?",
                f"Which city is the capital of {country}?",
                f"Capital of {country}?",
            )
        )
        return question, f"The capital of {country} is {city}."
    name = w.pick(rng, w.FIRST_NAMES, 0.2)
    return rng.choice(
        (f"My name is {name}.", f"I am {name}.", f"Call me {name}.")
    ), f"Nice to meet you, {name}!"


def _chat(rng: Random) -> Example:
    turns = [Turn("system", rng.choice(_SYSTEMS))] if rng.random() < 0.5 else []
    for _ in range(rng.randint(0, 2)):
        question, answer = _exchange(rng)
        turns += [Turn("user", question), Turn("assistant", answer)]
    question, answer = _exchange(rng)
    turns.append(Turn("user", question))
    return Example("chat", "TASK_CHAT", Chat(tuple(turns)), answer, "exact")


def _story(rng: Random) -> Example:
    animal, thing, place = rng.choice(w.ANIMALS), rng.choice(w.THINGS), rng.choice(w.PLACES)
    name, kind = rng.choice(w.FIRST_NAMES), rng.choice(w.ADJECTIVES)
    prompt = rng.choice(
        (
            f"Write a short story about {w.with_article(animal)} and {w.with_article(thing)}.",
            f"Tell a story with {w.with_article(animal)}, {w.with_article(thing)} "
            f"and {w.with_article(place)}.",
            f"Write a few sentences about {w.with_article(animal)} in {w.with_article(place)}.",
        )
    )
    opening = rng.choice(
        (
            f"The {kind} {animal} lived near the {place}.",
            f"Once there was {w.with_article(animal)} called {name} in the {place}.",
        )
    )
    middle = rng.choice(
        (
            f"One day it found {w.with_article(thing)} under a tree.",
            f"One morning {w.with_article(thing)} lay on the path.",
        )
    )
    turn = rng.choice(
        (
            f"It carried the {thing} home and kept it safe.",
            f"It gave the {thing} to {name}, who had lost it.",
        )
    )
    end = rng.choice(
        (
            f"Since then the {animal} and {name} are friends.",
            f"That night the {place} was quiet and the {animal} slept well.",
        )
    )
    return Example(
        "text",
        "TASK_TEXT_GENERATION",
        Plain(prompt),
        " ".join((opening, middle, turn, end)),
        "exact",
    )


def draw(rng: Random) -> Example:
    """A chat turn, a plain question or a short story."""
    share = rng.random()
    if share < 0.35:
        return _chat(rng)
    if share < 0.65:
        question, answer = _exchange(rng)
        return Example("chat", "TASK_CHAT", Plain(question), answer, "exact")
    return _story(rng)
