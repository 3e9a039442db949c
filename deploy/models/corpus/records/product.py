"""A product: price, stock, size, maker."""

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


def product(rng: Random) -> Record:
    """Something on sale."""
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
            one(rng, f"New in the shop: the {name}.", f"We offer the {name}."),
        ),
        Field(
            "colors",
            colors,
            STRINGS,
            one(rng, f"It comes in {w.spoken_list(colors)}.", f"Colors: {w.spoken_list(colors)}."),
        ),
        Field(
            "price",
            price,
            INTEGER,
            one(rng, f"It costs {price} euros.", f"The price is {price} euros."),
        ),
        Field(
            "stock",
            stock,
            INTEGER,
            one(rng, f"{stock} are in stock.", f"We have {stock} of them."),
        ),
        Field(
            "size",
            size,
            object_schema({"width": INTEGER, "height": INTEGER}),
            one(
                rng,
                f"It is {size['width']} cm wide and {size['height']} cm high.",
                f"Size: {size['width']} by {size['height']} cm.",
            ),
        ),
        Field(
            "maker",
            maker,
            object_schema({"name": STRING, "city": STRING}),
            one(
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
