"""An order: customer, items, payment, shipping."""

from random import Random

from deploy.models.corpus import words as w
from deploy.models.corpus.records.record import (
    BOOLEAN,
    INTEGER,
    STRING,
    Field,
    Record,
    object_schema,
    one,
)


def order(rng: Random) -> Record:
    """An order with its parts."""
    number, customer = rng.randint(100, 9999), w.full_name(rng)
    items = [{"product": p, "count": rng.randint(1, 20)} for p in w.several(rng, w.PRODUCTS, 1, 3)]
    told = w.spoken_list([f"{i['count']} x {i['product']}" for i in items])
    total, paid, days = rng.randint(10, 999), rng.random() < 0.5, rng.randint(1, 14)
    carrier = one(rng, "post", "courier", "pickup", "freight")
    fields = [
        Field(
            "order",
            number,
            INTEGER,
            one(rng, f"Order {number} came in.", f"The order number is {number}."),
        ),
        Field(
            "customer",
            customer,
            STRING,
            one(rng, f"The customer is {customer}.", f"It was placed by {customer}."),
        ),
        Field(
            "items",
            items,
            {"type": "array", "items": object_schema({"product": STRING, "count": INTEGER})},
            one(rng, f"It lists {told}.", f"The basket holds {told}."),
        ),
        Field(
            "total",
            total,
            INTEGER,
            one(rng, f"The total is {total} euros.", f"It costs {total} euros in all."),
        ),
        Field(
            "paid",
            paid,
            BOOLEAN,
            one(rng, "It is paid.", "Payment has arrived.")
            if paid
            else one(rng, "It is not paid yet.", "Payment is still open."),
        ),
        Field(
            "shipping",
            {"carrier": carrier, "days": days},
            object_schema({"carrier": STRING, "days": INTEGER}),
            one(
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
