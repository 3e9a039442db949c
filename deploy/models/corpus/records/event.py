"""An event: topic, time, place, speakers."""

from random import Random

from deploy.models.corpus import words as w
from deploy.models.corpus.records.record import (
    BOOLEAN,
    INTEGER,
    STRING,
    STRINGS,
    Field,
    Record,
    object_schema,
    one,
)


def event(rng: Random) -> Record:
    """A talk or workshop."""
    topic, city, date = w.pick(rng, w.TOPICS), w.pick(rng, w.CITIES), w.day(rng)
    hour = f"{rng.randint(8, 21)}:{rng.choice(['00', '15', '30', '45'])}"
    seats, free = rng.randint(10, 500), rng.random() < 0.5
    speakers = [w.full_name(rng) for _ in range(rng.randint(1, 3))]
    room, floor = w.pick(rng, w.STREETS) + " Hall", rng.randint(1, 9)
    fields = [
        Field(
            "topic",
            topic,
            STRING,
            one(rng, f"There will be a talk on {topic}.", f"The workshop is about {topic}."),
        ),
        Field("date", date, STRING, one(rng, f"It takes place on {date}.", f"The date is {date}.")),
        Field("time", hour, STRING, one(rng, f"Doors open at {hour}.", f"It starts at {hour}.")),
        Field("city", city, STRING, one(rng, f"The city is {city}.", f"We meet in {city}.")),
        Field(
            "seats",
            seats,
            INTEGER,
            one(rng, f"There are {seats} seats.", f"Up to {seats} people can come."),
        ),
        Field(
            "free",
            free,
            BOOLEAN,
            one(rng, "Entry is free.", "It costs nothing.")
            if free
            else one(rng, "Tickets are needed.", "Entry is not free."),
        ),
        Field(
            "speakers",
            speakers,
            STRINGS,
            one(
                rng,
                f"Speakers: {w.spoken_list(speakers)}.",
                f"On stage: {w.spoken_list(speakers)}.",
            ),
        ),
        Field(
            "venue",
            {"room": room, "floor": floor},
            object_schema({"room": STRING, "floor": INTEGER}),
            one(rng, f"It is in {room} on floor {floor}.", f"Come to floor {floor}, {room}."),
        ),
    ]
    distractors = [
        f"Last time it was in {w.pick(rng, w.CITIES)}.",
        f"The next one is on {w.day(rng)}.",
        f"Questions go to {w.full_name(rng)}.",
        f"Lunch is at {rng.randint(11, 13)}:00.",
    ]
    return Record(fields, distractors)
