"""Checksums, and rows of trees with data compression: the parts of docs/FORMAT.md that read_table.py needs as functions."""
import struct

CRC = list(range(256))
for _ in range(8):
    CRC = [(n >> 1) ^ 0x82F63B78 if n & 1 else n >> 1 for n in CRC]


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = CRC[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


class Packed(bytes):
    """A packed row, and what its leaf's dictionary has: a prefix for each column, and symbols."""
    prefixes, symbols = [], []


def packed(is_packed, row, dictionary):
    if not is_packed:
        return row
    made = Packed(row)
    counts = struct.unpack_from("<HH", dictionary, 0)
    ends = struct.unpack_from(f"<{sum(counts)}H", dictionary, 4)
    content = dictionary[4 + 2 * sum(counts):]
    parts = [content[start:end] for start, end in zip((0,) + ends, ends)]
    made.prefixes, made.symbols = parts[:counts[0]], parts[counts[0]:]
    return made


def columns(row):
    """Of each column its least bytes; None if it is NULL; its ordinal, a number, if it is large."""
    prefixes, symbols = (row.prefixes, row.symbols) if isinstance(row, Packed) else ([], [])
    count, at = row[0], 1
    if count >= 128:
        count, at = count & 127 | row[1] << 7, 2
    codes = [row[at + n // 2] >> 4 * (n % 2) & 15 for n in range(count)]
    at += (count + 1) // 2
    values, longs = [], []
    for n, code in enumerate(codes):
        prefix = prefixes[n] if n < len(prefixes) else b""
        if code <= 8:
            values.append(prefix + row[at:at + code])
            at += code
        elif code == 13:
            values.append(symbols[row[at]])
            at += 1
        elif code == 14:
            values.append(row[at + 1:at + 1 + row[at]])
            at += 1 + row[at]
        elif code == 11:
            values.append(struct.unpack_from("<H", row, at)[0])
            at += 6
        elif code in (10, 15):
            longs.append((n, prefix if code == 15 else b""))
            values.append(b"")
        else:
            values.append(b"\x01" if code == 12 else None)
    start = at + 2 * len(longs)
    for place, (n, prefix) in enumerate(longs):
        (end,) = struct.unpack_from("<H", row, at + 2 * place)
        values[n], start = prefix + row[start:end], end
    return values


def widened(tag, length, width, data):
    """The bytes that a row without compression has for a value's least bytes."""
    if tag in (18, 20, 24) and length > 4:
        cut, kept = (data[-1], data[:-1]) if data[-1] < 255 else (struct.unpack_from("<H", data, len(data) - 3)[0], data[:-3])
        return kept + (b"\0" if tag == 24 else b" ") * cut
    if width is None or tag in (17, 27):
        return data
    if tag == 28:
        return data.rjust(width, b"\0")
    if tag in (10, 11):
        return data.ljust(width, b"\0")[::-1]
    return int.from_bytes(data, "big", signed=tag not in (1, 2, 13)).to_bytes(width, "little", signed=tag not in (1, 2, 13))
