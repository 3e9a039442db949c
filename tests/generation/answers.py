"""What scripted models say to which prompt."""

ODD = "떡볶이 👨‍👩‍👧 𠮷 é"
HERON = "A lazy heron waited"
JSON = '{"name":"Anna","age":41}'
ANSWERS = {
    "say something odd": ODD,
    "tell about herons": HERON,
    "extract as json": JSON,
    "keep it short": "ok",
    "say a long thing": "word " * 40,
    "be empty": "\n" * 60,
}
