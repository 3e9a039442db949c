"""Persons and orders told in Chinese."""

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


def chinese_person(rng: Random) -> Record:
    """Who somebody is and who their friends are."""
    name, city, job, age = (
        w.chinese_name(rng),
        rng.choice(w.CN_CITIES),
        rng.choice(w.CN_JOBS),
        rng.randint(18, 79),
    )
    year = rng.randint(1990, 2030)
    friends = [w.chinese_name(rng) for _ in range(rng.randint(1, 3))]
    fields = [
        Field("name", name, STRING, one(rng, f"我叫{name}。", f"这位是{name}。")),
        Field("age", age, INTEGER, one(rng, f"今年{age}岁。", f"年龄{age}岁。")),
        Field("city", city, STRING, one(rng, f"住在{city}。", f"家在{city}。")),
        Field("job", job, STRING, one(rng, f"职业是{job}。", f"是一名{job}。")),
        Field("since", year, INTEGER, f"{year}年加入。"),
        Field("friends", friends, STRINGS, f"朋友有{'、'.join(friends)}。"),
    ]
    return Record(
        fields,
        [f"经理是{w.chinese_name(rng)}。", f"去年去过{rng.choice(w.CN_CITIES)}。"],
        chinese=True,
    )


def chinese_order(rng: Random) -> Record:
    """What was ordered, by whom, and whether it is paid."""
    number, customer, total = rng.randint(100, 9999), w.chinese_name(rng), rng.randint(10, 999)
    items = [
        {"product": p, "count": rng.randint(1, 20)} for p in w.several(rng, w.CN_PRODUCTS, 1, 3)
    ]
    city, paid = rng.choice(w.CN_CITIES), rng.random() < 0.5
    fields = [
        Field("order", number, INTEGER, f"订单号{number}。"),
        Field("customer", customer, STRING, one(rng, f"客户是{customer}。", f"由{customer}下单。")),
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
