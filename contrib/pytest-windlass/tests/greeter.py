"""An operator with kopf that answers greetings."""

import kopf


@kopf.on.create("greetings")
def greet(spec, patch, **_):
    patch.status["text"] = f"Hello {spec['name']}"
