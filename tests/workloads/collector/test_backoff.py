from workloads.collector.backoff import Backoff


def test_pauses_double_up_to_a_limit_and_vary() -> None:
    backoff = Backoff()
    for expected in [1, 2, 4, 8, 16, 30, 30, *[30] * 30]:
        assert expected / 2 <= backoff.next_pause() <= expected

    backoff.reset()
    assert backoff.next_pause() <= 1


def test_no_two_collectors_come_back_together() -> None:
    assert len({Backoff().next_pause() for _ in range(20)}) > 10


def test_a_servers_wish_is_heeded() -> None:
    assert Backoff().next_pause(at_least=40) == 40
