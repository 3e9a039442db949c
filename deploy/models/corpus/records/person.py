"""A person: name, age, home, work, languages."""

from random import Random

from deploy.models.corpus import words as w
from deploy.models.corpus.records.record import (
    INTEGER,
    STRING,
    STRINGS,
    Field,
    Record,
    object_schema,
    one,
)


def _home(rng: Random, first: str, street: str, number: int, city: str) -> Field:
    """Where somebody lives: now and then a whole address, else the city."""
    if rng.random() < 0.4:
        return Field(
            "address",
            {"street": street, "number": number, "city": city},
            object_schema({"street": STRING, "number": INTEGER, "city": STRING}),
            one(
                rng,
                f"{first} lives at {number} {street} in {city}.",
                f"The address is {number} {street}, {city}.",
            ),
        )
    return Field(
        "city",
        city,
        STRING,
        one(
            rng,
            f"{first} lives in {city}.",
            f"Home is {city}.",
            f"{first} moved to {city} last year.",
        ),
    )


def person(rng: Random) -> Record:
    """A member of a team."""
    name, city, job = w.full_name(rng), w.pick(rng, w.CITIES), w.pick(rng, w.JOBS)
    age, since = rng.randint(18, 79), rng.randint(1990, 2030)
    street, number = w.pick(rng, w.STREETS) + " Street", rng.randint(1, 99)
    languages = w.several(rng, w.LANGUAGES, 1, 3)
    mailbox = f"{rng.choice(w.THINGS)}{rng.randint(1, 99)}"
    email = f"{mailbox}@{w.pick(rng, w.TOPICS)}.{one(rng, 'com', 'org', 'net')}"
    first = name.split()[0]
    place = _home(rng, first, street, number, city)
    fields = [
        Field(
            "name",
            name,
            STRING,
            one(rng, f"This is {name}.", f"{name} joined the team.", f"Please welcome {name}."),
        ),
        Field(
            "age",
            age,
            INTEGER,
            one(rng, f"{first} is {age} years old.", f"{first} turned {age} this week."),
        ),
        place,
        Field(
            "job",
            job,
            STRING,
            one(rng, f"{first} works as a {job}.", f"{first} is a {job} by trade."),
        ),
        Field(
            "since",
            since,
            INTEGER,
            one(rng, f"A member since {since}.", f"The contract began in {since}."),
        ),
        Field(
            "languages",
            languages,
            STRINGS,
            one(
                rng,
                f"{first} speaks {w.spoken_list(languages)}.",
                f"Languages: {w.spoken_list(languages)}.",
            ),
        ),
        Field("email", email, STRING, one(rng, f"Write to {email}.", f"The email is {email}.")),
    ]
    distractors = [
        f"A brother lives in {w.pick(rng, w.CITIES)}.",
        f"The manager is {w.full_name(rng)}.",
        f"A sister is {rng.randint(18, 79)} years old.",
        f"A neighbor works as a {w.pick(rng, w.JOBS)}.",
    ]
    return Record(fields, distractors)
