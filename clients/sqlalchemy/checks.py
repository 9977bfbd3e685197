"""A small application on SQLAlchemy against ThawDB: the dialect's DDL, reflection, ORM and SQL.

Claim: what SQLAlchemy's SQL Server dialect sends, works: tables are made and reflected as they were declared, objects are
kept and found, pages are those asked for, savepoints roll back what came after them.

    checks.py pymssql|pyodbc        run by drive.py, which names the checks
"""

import datetime
import decimal
import os
import sys
import traceback
import urllib.parse
import uuid

import sqlalchemy as sa
from sqlalchemy import orm

PORT, PASSWORD = os.environ["THAWDB_PORT"], os.environ["THAWDB_PASSWORD"]
ENCRYPTION = "require" if os.environ["THAWDB_ENCRYPT"] == "on" else "off"
ODBC = f"DRIVER=FreeTDS;Server=127.0.0.1;Port={PORT};UID=sa;PWD={PASSWORD};Database=checks;TDS_Version=7.4;ClientCharset=UTF-8;Encryption={ENCRYPTION}"
URLS = {
    "pymssql": f"mssql+pymssql://sa:{urllib.parse.quote(PASSWORD)}@127.0.0.1:{PORT}/checks?charset=utf8&tds_version=7.4&encryption={ENCRYPTION}",
    "pyodbc": "mssql+pyodbc:///?odbc_connect=" + urllib.parse.quote_plus(ODBC),
}


class Base(orm.DeclarativeBase):
    """The application's tables."""


class Customer(Base):
    """Who orders."""

    __tablename__ = "customer"
    __table_args__ = (sa.CheckConstraint("credit >= 0", name="ck_customer_credit"), {"schema": "shop"})
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.Unicode(50), unique=True)
    credit: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(9, 2), server_default=sa.text("0"))
    since: orm.Mapped[datetime.datetime] = orm.mapped_column(sa.DateTime, server_default=sa.func.sysdatetime())
    orders: orm.Mapped[list["Order"]] = orm.relationship(back_populates="customer", cascade="all, delete-orphan")


class Order(Base):
    """What they order."""

    __tablename__ = "order"
    __table_args__ = (sa.Index("ix_order_placed", "placed", mssql_include=["total"]), {"schema": "shop"})
    key: orm.Mapped[uuid.UUID] = orm.mapped_column(sa.Uuid, primary_key=True, default=uuid.uuid4)
    customer_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("shop.customer.id", name="fk_order_customer"))
    placed: orm.Mapped[datetime.date]
    total: orm.Mapped[decimal.Decimal | None] = orm.mapped_column(sa.Numeric(12, 4))
    note: orm.Mapped[str | None] = orm.mapped_column(sa.UnicodeText)
    picture: orm.Mapped[bytes | None] = orm.mapped_column(sa.LargeBinary)
    open: orm.Mapped[bool] = orm.mapped_column(default=True)
    customer: orm.Mapped[Customer] = orm.relationship(back_populates="orders")


def expect(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: got {str(got)[:300]}, wanted {str(wanted)[:300]}")


def create(engine):
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema("shop"))
    Base.metadata.create_all(engine)
    # Made once: a second call finds the tables there.
    Base.metadata.create_all(engine)
    inspector = sa.inspect(engine)
    expect(sorted(inspector.get_table_names(schema="shop")), ["customer", "order"], "tables")
    expect(inspector.has_table("nonesuch", schema="shop"), False, "a table that is not there")


def reflect(engine):
    inspector = sa.inspect(engine)
    columns = {column["name"]: column for column in inspector.get_columns("order", schema="shop")}
    expect(list(columns), ["key", "customer_id", "placed", "total", "note", "picture", "open"], "columns")
    expect((str(columns["total"]["type"]), columns["total"]["nullable"], columns["key"]["nullable"]), ("NUMERIC(12, 4)", True, False), "a column")
    expect(inspector.get_pk_constraint("order", schema="shop")["constrained_columns"], ["key"], "the primary key")
    [key] = inspector.get_foreign_keys("order", schema="shop")
    expect((key["name"], key["referred_schema"], key["referred_table"], key["constrained_columns"], key["referred_columns"]),
           ("fk_order_customer", "shop", "customer", ["customer_id"], ["id"]), "the foreign key")  # fmt: skip
    [index] = inspector.get_indexes("order", schema="shop")
    expect((index["name"], index["column_names"], index["dialect_options"]["mssql_include"]), ("ix_order_placed", ["placed"], ["total"]), "the index")
    again = sa.MetaData()
    again.reflect(engine, schema="shop")
    expect(sorted(again.tables), ["shop.customer", "shop.order"], "reflected tables")
    expect(again.tables["shop.customer"].c.id.identity is not None, True, "an identity")
    expect([table.name for table in again.sorted_tables], ["customer", "order"], "their order")


def crud(engine):
    with orm.Session(engine) as session:
        zoe = Customer(name="Zoë 日本", credit=decimal.Decimal("12.50"))
        zoe.orders = [Order(placed=datetime.date(2024, 1, n), total=decimal.Decimal(n) / 3, note="ü" * n * 1000, picture=bytes(range(n))) for n in range(1, 4)]
        session.add_all([zoe, Customer(name="O'Neil")])
        session.commit()
        expect((zoe.id, zoe.credit, isinstance(zoe.since, datetime.datetime)), (1, decimal.Decimal("12.50"), True), "a row inserted")
    with orm.Session(engine) as session:
        zoe = session.scalars(sa.select(Customer).where(Customer.name == "Zoë 日本").options(orm.selectinload(Customer.orders))).one()
        orders = sorted(zoe.orders, key=lambda order: order.placed)
        expect([(o.total, len(o.note), o.picture, o.open) for o in orders], [(round(decimal.Decimal(n) / 3, 4), n * 1000, bytes(range(n)), True) for n in range(1, 4)], "its orders")
        orders[0].note, orders[1].open = None, False
        session.delete(orders[2])
        session.commit()
        expect(session.scalar(sa.select(sa.func.count()).select_from(Order)), 2, "orders left")
        expect(session.execute(sa.update(Order).values(total=None)).rowcount, 2, "rows updated")
        session.rollback()
        session.add(Customer(name="O'Neil"))
        try:
            session.commit()
        except sa.exc.IntegrityError as error:
            expect("2627" in str(error), True, "a name twice")
        else:
            raise AssertionError("a name was taken twice")


def queries(engine):
    with orm.Session(engine) as session:
        joined = sa.select(Customer.name, sa.func.count(Order.key), sa.func.sum(Order.total)).outerjoin(Customer.orders).group_by(Customer.name).order_by(Customer.name)
        expect([tuple(row)[:2] for row in session.execute(joined)], [("O'Neil", 0), ("Zoë 日本", 2)], "a join with groups")
        ranked = sa.select(Order.placed, sa.func.row_number().over(partition_by=Order.customer_id, order_by=Order.placed.desc())).order_by(Order.placed)
        expect([row[1] for row in session.execute(ranked)], [2, 1], "a window")
        late = sa.select(Order.customer_id).where(Order.placed > datetime.date(2024, 1, 1))
        expect(session.scalars(sa.select(Customer.name).where(Customer.id.in_(late))).all(), ["Zoë 日本"], "a subquery")
        base = sa.select(sa.literal(1).label("n")).cte("numbers", recursive=True)
        numbers = base.union_all(sa.select(base.c.n + 1).where(base.c.n < 10))
        expect(session.scalar(sa.select(sa.func.sum(numbers.c.n))), 55, "a recursive query")
        returned = session.execute(sa.insert(Customer).returning(Customer.id, Customer.name), [{"name": f"many {n}"} for n in range(5)]).all()
        expect(sorted(row.name for row in returned), [f"many {n}" for n in range(5)], "rows returned by an insert")
        session.rollback()


def paging(engine):
    with engine.begin() as connection:
        table = Customer.__table__
        connection.execute(sa.insert(table), [{"name": f"page {n:03d}"} for n in range(100)])
        wanted = sa.select(table.c.name).where(table.c.name.like("page%")).order_by(table.c.name)
        for page in (0, 3, 9):
            names = connection.scalars(wanted.offset(page * 10).limit(10)).all()
            expect(names, [f"page {n:03d}" for n in range(page * 10, page * 10 + 10)], f"page {page}")
        expect(len(connection.scalars(wanted.limit(7)).all()), 7, "a limit")
        expect(connection.execute(sa.delete(table).where(table.c.name.like("page%"))).rowcount, 100, "rows deleted")


def savepoints(engine):
    with orm.Session(engine) as session:
        session.add(Customer(name="kept"))
        try:
            with session.begin_nested():
                session.add(Customer(name="not kept"))
                session.flush()
                raise KeyError
        except KeyError:
            pass
        try:
            with session.begin_nested():
                session.add(Customer(name="kept"))
        except sa.exc.IntegrityError:
            pass
        session.commit()
        expect(session.scalars(sa.select(Customer.name).where(Customer.name.like("%kept"))).all(), ["kept"], "customers kept")
    serializable = engine.execution_options(isolation_level="SERIALIZABLE")
    with serializable.connect() as connection:
        expect(connection.get_isolation_level(), "SERIALIZABLE", "the isolation level")


def drop(engine):
    Base.metadata.drop_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.schema.DropSchema("shop"))
    expect("shop" in sa.inspect(engine).get_schema_names(), False, "the schema")


def main():
    # FreeTDS takes no sizes of parameters beforehand.
    options = {"use_setinputsizes": False} if sys.argv[1] == "pyodbc" else {}
    engine = sa.create_engine(URLS[sys.argv[1]], **options)
    failed = 0
    for check in (create, reflect, crud, queries, paging, savepoints, drop):
        try:
            check(engine)
        except Exception as error:  # noqa: BLE001 - every failure is told, and the others run
            failed += 1
            traceback.print_exc(file=sys.stdout)
            print(f"FAILED {check.__name__}: {error!r}"[:1000], flush=True)
        else:
            print(f"ok {check.__name__}", flush=True)
    sys.exit(1 if failed else 0)


main()
