"""What the plugin does, without tidepool: `python3 -m unittest`."""

import unittest

from lookup import Changes, Table, symbols_of

TABLE = "host, site, rack\nedge-7, nörd, r1\nedge-8, süd,\n"


class Lookup(unittest.TestCase):
    def test_series_get_what_they_do_not_have(self):
        symbols = symbols_of("__name__uphostedge-7sitehere", [8, 10, 14, 20, 24, 28])
        self.assertEqual(symbols, ["__name__", "up", "host", "edge-7", "site", "here"])
        refs, ends = [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 0, 1], [4, 10, 12]
        changes = Changes(Table(TABLE), symbols, refs, ends)
        self.assertEqual(changes.relabeled, [0, 1])
        self.assertEqual(changes.symbols.decode(), "sitenördrackr1")
        self.assertEqual(changes.symbol_ends, [4, 9, 13, 15])
        self.assertEqual(changes.label_refs, [0, 1, 2, 3, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 8, 9])
        self.assertEqual(changes.series_ends, [8, 16])

    def test_an_empty_value_gives_nothing(self):
        self.assertEqual(Table(TABLE).missing({"host": "edge-8"}), {"site": "süd"})
        self.assertEqual(Table(TABLE).missing({"host": "edge-9"}), {})
        self.assertEqual(Table(TABLE).missing({"host": "edge-8", "site": ""}), {"site": "süd"})

    def test_a_wrong_table_is_refused(self):
        for text, why in [
            ("", "expected a table"),
            ("host\na\n", "at least two"),
            ("host,host\n", "at least two"),
            ("host,a b\n", "is not a label name"),
            ("host,site\n\na,b,c\n", "line 3: expected 2 values, not 3"),
        ]:
            with self.assertRaisesRegex(ValueError, why):
                Table(text)


if __name__ == "__main__":
    unittest.main()
