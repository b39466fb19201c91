"""Where compiled libraries are kept."""

from pathlib import Path

from hypermon.sim import cache


def test_where_it_is_kept(monkeypatch, tmp_path):
    root = Path(cache.__file__).parents[1]
    monkeypatch.delenv("HYPERMON_CACHE", raising=False)
    assert cache.cache_directory() == root / ".build"
    monkeypatch.setenv("HYPERMON_CACHE", str(tmp_path))
    assert cache.cache_directory() == tmp_path
    # Installed, there is no checkout to keep it in.
    monkeypatch.delenv("HYPERMON_CACHE")
    installed = tmp_path / "site-packages" / "hypermon" / "sim"
    monkeypatch.setattr(cache, "__file__", str(installed / "cache.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_directory() == tmp_path / "xdg" / "hypermon"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.cache_directory() == tmp_path / "home" / ".cache" / "hypermon"
