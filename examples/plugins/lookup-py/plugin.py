"""Gives series labels from a table, which is the configuration."""

from componentize_py_types import Err
from lookup import Changes, Table, symbols_of
from wit_world import exports
from wit_world.exports.transform_batches import Edit, Verdict_Edited, Verdict_Unchanged
from wit_world.imports.types import Interest


class TransformBatches(exports.TransformBatches):
    table: Table

    def configure(self, config):
        try:
            TransformBatches.table = Table(config)
        except ValueError as error:
            raise Err(str(error))
        # Labels are enough: no samples cross the boundary.
        return Interest(0)

    def transform(self, batch):
        symbols = symbols_of(batch.symbols, batch.symbol_ends)
        changes = Changes(self.table, symbols, batch.label_refs, batch.series_ends)
        if not changes.relabeled:
            return Verdict_Unchanged()
        return Verdict_Edited(
            Edit(
                symbols=changes.symbols.decode(),
                symbol_ends=changes.symbol_ends,
                dropped=[],
                relabeled=changes.relabeled,
                label_refs=changes.label_refs,
                series_ends=changes.series_ends,
                added=None,
            )
        )
