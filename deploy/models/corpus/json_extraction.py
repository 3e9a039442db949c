"""Text to JSON: records told in sentences; nested parts, lists, distractors, Chinese texts."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from deploy.models.corpus import words as w
from deploy.models.corpus.example import Example, Plain

STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}
STRINGS: dict[str, Any] = {"type": "array", "items": STRING}


@dataclass(frozen=True)
class Field:
    """One key with its value, its schema and the sentence that tells it."""

    key: str
    value: Any
    schema: dict[str, Any]
    sentence: str

    def spoken(self) -> str:
        """The key as instructions write it: `address(street, city)`, `items[product, count]`."""
        if self.schema["type"] == "object":
            return f"{self.key}({', '.join(self.schema['properties'])})"
        if self.schema["type"] == "array":
            return f"{self.key}[{', '.join(self.schema['items'].get('properties', {}))}]"
        return self.key


@dataclass(frozen=True)
class Record:
    """What one text tells: fields in any order, and sentences that are not asked for."""

    fields: list[Field]
    distractors: list[str]
    chinese: bool = False


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """A closed object whose keys are all required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _one(rng: Random, *choices: str) -> str:
    return rng.choice(choices)


def _home(rng: Random, first: str, street: str, number: int, city: str) -> Field:
    """Where somebody lives: now and then a whole address, else the city."""
    if rng.random() < 0.4:
        return Field(
            "address",
            {"street": street, "number": number, "city": city},
            object_schema({"street": STRING, "number": INTEGER, "city": STRING}),
            _one(
                rng,
                f"{first} lives at {number} {street} in {city}.",
                f"The address is {number} {street}, {city}.",
            ),
        )
    return Field(
        "city",
        city,
        STRING,
        _one(
            rng,
            f"{first} lives in {city}.",
            f"Home is {city}.",
            f"{first} moved to {city} last year.",
        ),
    )


def _person(rng: Random) -> Record:
    name, city, job = w.full_name(rng), w.pick(rng, w.CITIES), w.pick(rng, w.JOBS)
    age, since = rng.randint(18, 79), rng.randint(1990, 2030)
    street, number = w.pick(rng, w.STREETS) + " Street", rng.randint(1, 99)
    languages = w.several(rng, w.LANGUAGES, 1, 3)
    mailbox = f"{rng.choice(w.THINGS)}{rng.randint(1, 99)}"
    email = f"{mailbox}@{w.pick(rng, w.TOPICS)}.{_one(rng, 'com', 'org', 'net')}"
    first = name.split()[0]
    place = _home(rng, first, street, number, city)
    fields = [
        Field(
            "name",
            name,
            STRING,
            _one(rng, f"This is {name}.", f"{name} joined the team.", f"Please welcome {name}."),
        ),
        Field(
            "age",
            age,
            INTEGER,
            _one(rng, f"{first} is {age} years old.", f"{first} turned {age} this week."),
        ),
        place,
        Field(
            "job",
            job,
            STRING,
            _one(rng, f"{first} works as a {job}.", f"{first} is a {job} by trade."),
        ),
        Field(
            "since",
            since,
            INTEGER,
            _one(rng, f"A member since {since}.", f"The contract began in {since}."),
        ),
        Field(
            "languages",
            languages,
            STRINGS,
            _one(
                rng,
                f"{first} speaks {w.spoken_list(languages)}.",
                f"Languages: {w.spoken_list(languages)}.",
            ),
        ),
        Field("email", email, STRING, _one(rng, f"Write to {email}.", f"The email is {email}.")),
    ]
    distractors = [
        f"A brother lives in {w.pick(rng, w.CITIES)}.",
        f"The manager is {w.full_name(rng)}.",
        f"A sister is {rng.randint(18, 79)} years old.",
        f"A neighbor works as a {w.pick(rng, w.JOBS)}.",
    ]
    return Record(fields, distractors)


def _order(rng: Random) -> Record:
    number, customer = rng.randint(100, 9999), w.full_name(rng)
    items = [{"product": p, "count": rng.randint(1, 20)} for p in w.several(rng, w.PRODUCTS, 1, 3)]
    told = w.spoken_list([f"{i['count']} x {i['product']}" for i in items])
    total, paid, days = rng.randint(10, 999), rng.random() < 0.5, rng.randint(1, 14)
    carrier = _one(rng, "post", "courier", "pickup", "freight")
    fields = [
        Field(
            "order",
            number,
            INTEGER,
            _one(rng, f"Order {number} came in.", f"The order number is {number}."),
        ),
        Field(
            "customer",
            customer,
            STRING,
            _one(rng, f"The customer is {customer}.", f"It was placed by {customer}."),
        ),
        Field(
            "items",
            items,
            {"type": "array", "items": object_schema({"product": STRING, "count": INTEGER})},
            _one(rng, f"It lists {told}.", f"The basket holds {told}."),
        ),
        Field(
            "total",
            total,
            INTEGER,
            _one(rng, f"The total is {total} euros.", f"It costs {total} euros in all."),
        ),
        Field(
            "paid",
            paid,
            BOOLEAN,
            _one(rng, "It is paid.", "Payment has arrived.")
            if paid
            else _one(rng, "It is not paid yet.", "Payment is still open."),
        ),
        Field(
            "shipping",
            {"carrier": carrier, "days": days},
            object_schema({"carrier": STRING, "days": INTEGER}),
            _one(
                rng,
                f"It goes by {carrier} and takes {days} days.",
                f"Delivery by {carrier} within {days} days.",
            ),
        ),
    ]
    distractors = [
        f"The last order cost {rng.randint(10, 999)} euros.",
        f"{w.full_name(rng)} packed it.",
        f"A {w.pick(rng, w.PRODUCTS)} was sold out.",
        f"Ticket {rng.randint(100, 9999)} is closed.",
    ]
    return Record(fields, distractors)


def _event(rng: Random) -> Record:
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
            _one(rng, f"There will be a talk on {topic}.", f"The workshop is about {topic}."),
        ),
        Field(
            "date", date, STRING, _one(rng, f"It takes place on {date}.", f"The date is {date}.")
        ),
        Field("time", hour, STRING, _one(rng, f"Doors open at {hour}.", f"It starts at {hour}.")),
        Field("city", city, STRING, _one(rng, f"The city is {city}.", f"We meet in {city}.")),
        Field(
            "seats",
            seats,
            INTEGER,
            _one(rng, f"There are {seats} seats.", f"Up to {seats} people can come."),
        ),
        Field(
            "free",
            free,
            BOOLEAN,
            _one(rng, "Entry is free.", "It costs nothing.")
            if free
            else _one(rng, "Tickets are needed.", "Entry is not free."),
        ),
        Field(
            "speakers",
            speakers,
            STRINGS,
            _one(
                rng,
                f"Speakers: {w.spoken_list(speakers)}.",
                f"On stage: {w.spoken_list(speakers)}.",
            ),
        ),
        Field(
            "venue",
            {"room": room, "floor": floor},
            object_schema({"room": STRING, "floor": INTEGER}),
            _one(rng, f"It is in {room} on floor {floor}.", f"Come to floor {floor}, {room}."),
        ),
    ]
    distractors = [
        f"Last time it was in {w.pick(rng, w.CITIES)}.",
        f"The next one is on {w.day(rng)}.",
        f"Questions go to {w.full_name(rng)}.",
        f"Lunch is at {rng.randint(11, 13)}:00.",
    ]
    return Record(fields, distractors)


def _product(rng: Random) -> Record:
    brand = w.made_up(rng) if rng.random() < 0.2 else rng.choice(w.ADJECTIVES)
    name = f"{brand.capitalize()} {w.pick(rng, w.PRODUCTS)}"
    colors, price, stock = w.several(rng, w.COLORS, 1, 3), rng.randint(5, 900), rng.randint(0, 300)
    size = {"width": rng.randint(5, 200), "height": rng.randint(5, 200)}
    maker = {"name": w.pick(rng, w.LAST_NAMES), "city": w.pick(rng, w.CITIES)}
    fields = [
        Field(
            "product",
            name,
            STRING,
            _one(rng, f"New in the shop: the {name}.", f"We offer the {name}."),
        ),
        Field(
            "colors",
            colors,
            STRINGS,
            _one(rng, f"It comes in {w.spoken_list(colors)}.", f"Colors: {w.spoken_list(colors)}."),
        ),
        Field(
            "price",
            price,
            INTEGER,
            _one(rng, f"It costs {price} euros.", f"The price is {price} euros."),
        ),
        Field(
            "stock",
            stock,
            INTEGER,
            _one(rng, f"{stock} are in stock.", f"We have {stock} of them."),
        ),
        Field(
            "size",
            size,
            object_schema({"width": INTEGER, "height": INTEGER}),
            _one(
                rng,
                f"It is {size['width']} cm wide and {size['height']} cm high.",
                f"Size: {size['width']} by {size['height']} cm.",
            ),
        ),
        Field(
            "maker",
            maker,
            object_schema({"name": STRING, "city": STRING}),
            _one(
                rng,
                f"It is made by {maker['name']} in {maker['city']}.",
                f"{maker['name']} of {maker['city']} builds it.",
            ),
        ),
    ]
    distractors = [
        f"Last year the price was {rng.randint(5, 900)} euros.",
        f"The older model was {w.pick(rng, w.COLORS)}.",
        f"It goes well with a {w.pick(rng, w.PRODUCTS)}.",
        f"{rng.randint(2, 90)} people rated it.",
    ]
    return Record(fields, distractors)


def _chinese_person(rng: Random) -> Record:
    name, city, job, age = (
        w.chinese_name(rng),
        rng.choice(w.CN_CITIES),
        rng.choice(w.CN_JOBS),
        rng.randint(18, 79),
    )
    year = rng.randint(1990, 2030)
    friends = [w.chinese_name(rng) for _ in range(rng.randint(1, 3))]
    fields = [
        Field("name", name, STRING, _one(rng, f"我叫{name}。", f"这位是{name}。")),
        Field("age", age, INTEGER, _one(rng, f"今年{age}岁。", f"年龄{age}岁。")),
        Field("city", city, STRING, _one(rng, f"住在{city}。", f"家在{city}。")),
        Field("job", job, STRING, _one(rng, f"职业是{job}。", f"是一名{job}。")),
        Field("since", year, INTEGER, f"{year}年加入。"),
        Field("friends", friends, STRINGS, f"朋友有{'、'.join(friends)}。"),
    ]
    return Record(
        fields,
        [f"经理是{w.chinese_name(rng)}。", f"去年去过{rng.choice(w.CN_CITIES)}。"],
        chinese=True,
    )


def _chinese_order(rng: Random) -> Record:
    number, customer, total = rng.randint(100, 9999), w.chinese_name(rng), rng.randint(10, 999)
    items = [
        {"product": p, "count": rng.randint(1, 20)} for p in w.several(rng, w.CN_PRODUCTS, 1, 3)
    ]
    city, paid = rng.choice(w.CN_CITIES), rng.random() < 0.5
    fields = [
        Field("order", number, INTEGER, f"订单号{number}。"),
        Field(
            "customer", customer, STRING, _one(rng, f"客户是{customer}。", f"由{customer}下单。")
        ),
        Field(
            "items",
            items,
            {"type": "array", "items": object_schema({"product": STRING, "count": INTEGER})},
            "商品有" + "、".join(f"{i['product']}{i['count']}件" for i in items) + "。",
        ),
        Field("total", total, INTEGER, f"共{total}元。"),
        Field("city", city, STRING, f"寄到{city}。"),
        Field("paid", paid, BOOLEAN, "已付款。" if paid else "未付款。"),
    ]
    return Record(
        fields,
        [f"上次花了{rng.randint(10, 999)}元。", f"由{w.chinese_name(rng)}打包。"],
        chinese=True,
    )


_KINDS: list[tuple[Callable[[Random], Record], int]] = [
    (_person, 5),
    (_order, 5),
    (_event, 4),
    (_product, 4),
    (_chinese_person, 2),
    (_chinese_order, 1),
]
_INSTRUCTIONS = (
    "Extract {keys} as JSON: {text}",
    "Return JSON with the keys {keys}.\n{text}",
    "{text}\nGive {keys} as JSON.",
)
# ruff: noqa: RUF001 - Chinese texts have Chinese punctuation
_CHINESE_INSTRUCTIONS = ("提取{keys}，输出JSON：{text}", "Extract {keys} as JSON: {text}")


def compact(value: Any) -> str:
    """JSON without white space between tokens, other scripts as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _told(rng: Random, record: Record, asked: list[Field]) -> str:
    """The text: the asked fields, some others and some distractors; the first field leads."""
    others = [f for f in record.fields if f not in asked]
    extra = rng.sample(others, min(len(others), rng.randint(0, 1)))
    sentences = [f.sentence for f in asked + extra if f is not record.fields[0]]
    sentences += rng.sample(record.distractors, rng.randint(0, 1))
    rng.shuffle(sentences)
    return ("" if record.chinese else " ").join([record.fields[0].sentence, *sentences])


def draw(rng: Random) -> Example:
    """A record, two to six keys of it, and the document that answers."""
    kinds, weights = zip(*_KINDS, strict=True)
    record = rng.choices(kinds, weights)[0](rng)
    asked = rng.sample(record.fields, rng.randint(2, 6))
    templates = _CHINESE_INSTRUCTIONS if record.chinese else _INSTRUCTIONS
    keys = ", ".join(field.spoken() for field in asked)
    prompt = rng.choice(templates).format(keys=keys, text=_told(rng, record, asked))
    return Example(
        kind="json",
        task="TASK_STRUCTURED_OUTPUT",
        input=Plain(prompt),
        answer=compact({field.key: field.value for field in asked}),
        check="json",
        schema=compact(object_schema({field.key: field.schema for field in asked})),
    )
