import bench


def test_the_benchmark_measures_everything() -> None:
    results = bench.bench([3], episodes=2, reply_ms=1.0)
    for name in ("cpu_ms_per_turn", "floor_aiohttp_ms", "floor_sdk_create_ms", "model_call_ms"):
        assert 0 < results[name]["3"] < 1000
    assert results["setting"] == {"episodes_in_flight": 2, "reply_ms": 1.0}
    text = bench.table(results)
    assert "ratio_to_aiohttp" in text and len(text.splitlines()) == 7
