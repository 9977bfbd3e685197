#!/usr/bin/env python3
"""Reads a table out of a ThawDB data file, with nothing but docs/FORMAT.md and the standard library.

    read_table.py DATABASE.mdf TABLE            rows, a line each, fields between '|', NULL as NULL
    read_table.py DATABASE.mdf                  the tables

The database must have been closed: what only the log or the version store knows is not read. Every page's checksum and
name are verified on the way, and the pages met are compared with what the allocation maps have.
"""
import datetime
import decimal
import struct
import sys

from codec import columns, crc32c, packed, widened

PAGE, HEADER, MAP_AT, MAP_BYTES, EXTENT = 8192, 96, 128, 8064, 8
LEAF, INNER, LARGE, IAM, PFS, BOOT = 1, 2, 3, 10, 11, 13
GAM_EXTENTS, PFS_PAGES, ALLOCATED = 64512, 8064, 64


class Damage(Exception):
    """The file is not what docs/FORMAT.md says."""


class Page:
    """A verified page of the primary file."""

    def __init__(self, data, number):
        (self.checksum, version, self.type, self.flags, self.number, self.file, self.level) = struct.unpack_from("<IBBHIHB", data, 0)
        if self.checksum != crc32c(data[4:]):
            raise Damage(f"page {number}: checksum")
        if version != 1 or self.number != number:
            raise Damage(f"page {number}: says it is page {self.number} of format {version}")
        self.data = data
        (self.tree, self.object, self.index, self.slots) = struct.unpack_from("<QIIH", data, 24)
        (self.prefix, self.dictionary) = struct.unpack_from("<H24xH", data, 46)
        (self.right, self.right_file) = struct.unpack_from("<I2xH", data, 60)

    def entries(self):
        """Key, payload, large references, ghost of each slot."""
        start = self.data[HEADER:HEADER + self.prefix]
        for slot in range(self.slots):
            at, length, _ = struct.unpack_from("<HHI", self.data, PAGE - 8 * (slot + 1))
            flags, suffix = struct.unpack_from("<BH", self.data, at)
            end, at, large = at + length, at + (19 if flags & 2 else 3), []
            if flags & 4:
                (count,) = struct.unpack_from("<H", self.data, at)
                large = [self.data[at + 2 + 16 * n:at + 18 + 16 * n] for n in range(count)]
                at += 2 + 16 * count
            row = packed(flags & 8, self.data[at + suffix:end], self.data[HEADER + self.prefix:][:self.dictionary])
            yield start + self.data[at:at + suffix], row, large, bool(flags & 1)


class Database:
    def __init__(self, path):
        self.file = open(path, "rb")
        boot = self.page(9)
        if boot.type != BOOT:
            raise Damage("page 9 is not the boot page")
        # The trees' part of the boot page: version, 0, root of the units tree, its first IAM page.
        entries = self.leaves(self.place(boot.data, 352 + 2), [])
        self.units = {int.from_bytes(key, "big"): row for key, row, _, ghost in entries if not ghost}

    def page(self, number):
        self.file.seek(number * PAGE)
        return Page(self.file.read(PAGE), number)

    @staticmethod
    def place(data, at):
        file, number = struct.unpack_from("<HI", data, at)
        if file != 1:
            raise Damage(f"page of file {file}: this reader knows the primary file only")
        return number

    def leaves(self, root, seen):
        """The entries of a tree in order, and the pages met."""
        page = self.page(root)
        seen.append(root)
        if page.type == INNER:
            for _, child, _, _ in page.entries():
                yield from self.leaves(self.place(child, 0), seen)
        elif page.type == LEAF:
            yield from page.entries()
        else:
            raise Damage(f"page {root} is of type {page.type}, not of a tree")

    def unit_pages(self, first):
        """Pages that a unit's IAM chain and the PFS pages say are allocated to it."""
        found, number = set(), first
        while True:
            iam = self.page(number)
            if iam.type != IAM:
                raise Damage(f"page {number} is not an IAM page")
            file, _, interval = struct.unpack_from("<HHI", iam.data, 96)
            for bit in range(GAM_EXTENTS):
                if iam.data[MAP_AT + bit // 8] >> (bit % 8) & 1:
                    start = (interval * GAM_EXTENTS + bit) * EXTENT
                    pfs = self.page(start // PFS_PAGES * PFS_PAGES + 1)
                    states = pfs.data[MAP_AT + start % PFS_PAGES:MAP_AT + start % PFS_PAGES + EXTENT]
                    found.update(start + n for n, state in enumerate(states) if state & ALLOCATED)
            if iam.right_file == 0:
                return found
            number = iam.right

    def tree(self, tree):
        """Keys, rows, large references of a tree; every page of its unit must be met, and no other."""
        unit, seen = self.units[tree], []
        for key, row, large, ghost in self.leaves(self.place(unit, 12), seen):
            if not ghost:
                yield key, row, large
        if set(seen) != self.unit_pages(self.place(unit, 18)):
            raise Damage(f"tree {tree}: its pages are not those its maps have")

    def large(self, reference):
        number, length = self.place(reference, 0), struct.unpack_from("<I", reference, 6)[0]
        depth, reach = 0, PAGE - HEADER
        while reach < length:
            depth, reach = depth + 1, reach * ((PAGE - HEADER) // 6)
        return self.part(number, depth, reach, length)

    def part(self, number, depth, reach, length):
        page = self.page(number)
        if page.type != LARGE or page.level != depth:
            raise Damage(f"page {number} is not part of a large value at depth {depth}")
        if depth == 0:
            return page.data[HEADER:HEADER + length]
        below, parts, at = reach // ((PAGE - HEADER) // 6), [], HEADER
        while length > 0:
            parts.append(self.part(self.place(page.data, at), depth - 1, below, min(length, below)))
            at, length = at + 6, length - below
        return b"".join(parts)

    def tables(self):
        """Definitions by name, from the catalog's tree (tree 1), kind 3."""
        records = [self.large(large[0]) if large else row for key, row, large in self.tree(1) if key[0] == 3]
        return {table.name: table for table in (Table(Record(record)) for record in records)}


class Record:
    """The fields of a catalog record."""

    def __init__(self, data):
        if data[0] not in (1, 2, 3, 4, 5):
            raise Damage(f"catalog record of format {data[0]}")
        self.data, self.at, self.version = data, 1, data[0]

    def number(self, form):
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        length = self.number("<I")
        self.at += length
        return self.data[self.at - length:self.at].decode()

    def maybe(self, read):
        return read() if self.number("<B") else None

    def list(self, read):
        return [read() for _ in range(self.number("<I"))]


# Type tag: name, bytes of the fixed part of a row (None: variable), format of the fixed part.
FIXED = {1: (1, "<B"), 2: (1, "<B"), 3: (2, "<h"), 4: (4, "<i"), 5: (8, "<q"), 10: (4, "<f"), 11: (8, "<d"), 12: (3, None)}

# Types whose values the key gives back, so that the row does not have them; this reader knows these of them.
IN_KEY = (1, 2, 3, 4, 5, 6, 7, 12)


class Column:
    def __init__(self, record):
        self.id, self.name = record.number("<i"), record.text()
        (self.tag, self.a, self.b, _) = (record.number("<B"), record.number("<H"), record.number("<B"), record.number("<H"))
        self.nullable = record.number("<B") == 1
        record.maybe(lambda: (record.number("<q"), record.number("<q")))
        record.maybe(record.text), record.maybe(record.text)
        self.in_rows = True
        if record.version > 2:  # definition, whether persisted, whether stored; the user's type
            self.in_rows = record.maybe(lambda: (record.text(), record.number("<B"), record.number("<B"))[2] == 1) is not False
            record.number("<i")

    def width(self):
        if self.tag in (6, 7):
            return 4 if self.a <= 9 else 8 if self.a <= 18 else 16
        return FIXED[self.tag][0] if self.tag in FIXED else None

    def is_text(self):
        return 18 <= self.tag <= 23

    def value(self, data):
        if self.is_text():
            return data.decode()
        if self.width() is None:
            return data
        if self.tag in (6, 7):
            return decimal.Decimal(int.from_bytes(data, "little", signed=True)).scaleb(-self.b)
        if self.tag == 12:
            return datetime.date.fromordinal(int.from_bytes(data, "little") + 1)
        return struct.unpack(FIXED[self.tag][1], data)[0]

    def key_value(self, key, at, turn):
        """The value at `at` of a key, and where the next begins; only of types the key gives back (IN_KEY)."""
        if self.nullable:
            if key[at] ^ turn == 0:
                return None, at + 1
            at += 1
        width = 4 if self.tag == 12 else self.width()
        value = int.from_bytes(bytes(byte ^ turn for byte in key[at:at + width]), "big")
        value -= 1 << (8 * width - 1) if self.tag > 2 else 0
        if self.tag == 12:
            value = datetime.date.fromordinal(value + 1)
        return (decimal.Decimal(value).scaleb(-self.b) if self.tag in (6, 7) else value), at + width


class Table:
    def __init__(self, record):
        record.number("<q")  # object and schema
        self.name = record.text()
        record.number("<q"), record.number("<q")  # made, changed
        self.columns = record.list(lambda: Column(record))
        record.number("<I")  # how many indexes; the first is the rows' own
        self.first = self.index(record)

    @staticmethod
    def index(record):
        record.number("<i")
        record.maybe(record.text)
        keys = record.list(lambda: (record.number("<I"), record.number("<B")))
        record.list(lambda: record.number("<I"))
        record.number("<B"), record.number("<B"), record.number("<B")
        [record.number("<B") for _ in range(1 if record.version == 1 else 7)]  # no filter; options
        compact = record.version > 3 and record.number("<B") > 0
        return keys, record.number("<Q"), compact

    def rows(self, database):
        keys, tree, compact = self.first
        in_key = [at for at, _ in keys if self.columns[at].tag in IN_KEY]
        held = [at for at in range(len(self.columns)) if self.columns[at].in_rows]
        stored = [at for at in held if at not in in_key]
        for key, row, large in database.tree(tree):
            values, at = dict((self.compact if compact else self.stored)(row, large, stored, database)), 0
            for column, descending in keys:
                turn = 255 if descending else 0
                if self.columns[column].is_text():  # Sort keys, not text: ended by 00.
                    at = at + 1 if self.columns[column].nullable and key[at] == turn else key.index(turn, at) + 1
                    continue
                values[column], at = self.columns[column].key_value(key, at, turn)
            yield [values[at] for at in held]

    def compact(self, row, large, stored, database):
        found = columns(row) if stored else []
        for column, data in zip((self.columns[number] for number in stored), found + [None] * len(stored)):
            if isinstance(data, int):
                data = database.large(large[data])
            elif data is not None:
                data = widened(column.tag, column.a, column.width(), data)
            yield self.columns.index(column), None if data is None else column.value(data)

    def stored(self, row, large, stored, database):
        (fixed_end,) = struct.unpack_from("<H", row, 0)
        (count,) = struct.unpack_from("<H", row, fixed_end)
        nulls = fixed_end + 2
        variable = nulls + (count + 7) // 8
        (ends_count,) = struct.unpack_from("<H", row, variable)
        at, ordinal, start = 2, 0, variable + 2 + 2 * ends_count
        for position, number in enumerate(stored):
            column = self.columns[number]
            width, null = column.width(), position >= count or row[nulls + position // 8] >> (position % 8) & 1
            if width is not None:
                data = row[at:at + width]
                at += width
            else:
                end = struct.unpack_from("<H", row, variable + 2 + 2 * ordinal)[0] if ordinal < ends_count else start
                data = row[start:end & 0x7FFF]
                if end & 0x8000:
                    data = database.large(large[struct.unpack_from("<H", data)[0]])
                start, ordinal = end & 0x7FFF, ordinal + 1
            yield number, None if null else column.value(data)


def shown(value):
    if value is None:
        return "NULL"
    return "0x" + value.hex().upper() if isinstance(value, bytes) else str(value)


def main(arguments):
    database = Database(arguments[0])
    tables = database.tables()
    rows = tables[arguments[1]].rows(database) if len(arguments) > 1 else [[name] for name in tables]
    for row in rows:
        print("|".join(shown(value) for value in row))


if __name__ == "__main__":
    main(sys.argv[1:])
