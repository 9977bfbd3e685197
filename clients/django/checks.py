"""A small Django project against ThawDB, with mssql-django over pyodbc and FreeTDS.

Claim: what Django's SQL Server backend sends, works: the database is migrated (Django's own applications and `shop`), and
changed by a second migration; objects are kept, found, joined, grouped and paged; transactions and savepoints end as
they should; `inspectdb` tells the tables again.

Run by drive.py, which names the checks.
"""

import datetime
import decimal
import io
import os
import pathlib
import sys
import traceback
import uuid

import django
from django.conf import settings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
ENCRYPTION = "require" if os.environ["THAWDB_ENCRYPT"] == "on" else "off"
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "mssql", "NAME": "checks", "USER": "sa", "PASSWORD": os.environ["THAWDB_PASSWORD"],
            "HOST": "127.0.0.1", "PORT": os.environ["THAWDB_PORT"],
            "OPTIONS": {
                "driver": "FreeTDS", "host_is_server": True, "connection_retries": 0,
                "extra_params": f"TDS_Version=7.4;ClientCharset=UTF-8;Encryption={ENCRYPTION}",
            },
        }
    },
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "shop"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", USE_TZ=False, PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
)  # fmt: skip
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, connection, migrations, models, transaction  # noqa: E402
from django.db.migrations.state import ProjectState  # noqa: E402
from django.db.models import Avg, Count, F, OuterRef, Q, Subquery, Sum, Value, Window  # noqa: E402
from django.db.models.functions import Concat, Lower, RowNumber, TruncMonth  # noqa: E402
from shop.models import Customer, Order, Tag  # noqa: E402


def expect(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: got {str(got)[:300]}, wanted {str(wanted)[:300]}")


def migrate():
    """Django's own migrations, the tables of `shop` by its models, and changes of a table as migrations make them."""
    call_command("migrate", verbosity=0)
    with connection.schema_editor() as editor:
        for model in (Tag, Customer, Order):
            editor.create_model(model)
    tables = set(connection.introspection.table_names())
    expect({"auth_user", "django_session", "shop_order", "shop_order_tags"} <= tables, True, f"tables {tables}")
    state = ProjectState()
    steps = [
        migrations.CreateModel("Shelf", [("id", models.BigAutoField(primary_key=True)), ("label", models.CharField(max_length=10))]),
        migrations.AddField("Shelf", "height", models.IntegerField(default=3)),
        migrations.AlterField("Shelf", "label", models.CharField(max_length=40, null=True, db_index=True)),
        migrations.RenameField("Shelf", "height", "levels"),
        migrations.AddIndex("Shelf", models.Index(fields=["levels"], name="shop_shelf_levels")),
        migrations.AddField("Shelf", "customer", models.ForeignKey("shop.Customer", models.SET_NULL, null=True)),
        migrations.RemoveField("Shelf", "label"),
        migrations.AlterModelTable("Shelf", "shop_rack"),
    ]
    state.add_model(django.db.migrations.state.ModelState.from_model(Customer))
    for step in steps:
        before = state.clone()
        step.state_forwards("shop", state)
        with connection.schema_editor() as editor:
            step.database_forwards("shop", editor, before, state)
    with connection.cursor() as cursor:
        columns = [column.name for column in connection.introspection.get_table_description(cursor, "shop_rack")]
    expect(columns, ["id", "levels", "customer_id"], "columns after all changes")


def orm():
    zoe = Customer.objects.create(name="Zoë 日本", credit=decimal.Decimal("12.50"))
    tags = [Tag.objects.create(word=word) for word in ("red", "green", "blue")]
    for n in range(1, 4):
        order = Order.objects.create(
            customer=zoe, placed=datetime.date(2024, n, n), hour=datetime.time(12, n, 59, 123456), took=datetime.timedelta(days=n, microseconds=1),
            total=decimal.Decimal(n), weight=n / 8, size=-(2**62) + n, note="ü" * n * 1000, picture=bytes(range(n)), details={"n": n, "list": [1, None, "é"]},
        )  # fmt: skip
        order.tags.set(tags[:n])
    for n, order in enumerate(Order.objects.all(), 1):
        got = (order.placed, order.hour, order.took, order.total, order.weight, order.size, len(order.note), bytes(order.picture), order.details)
        wanted = (datetime.date(2024, n, n), datetime.time(12, n, 59, 123456), datetime.timedelta(days=n, microseconds=1), decimal.Decimal(n),
                  n / 8, -(2**62) + n, n * 1000, bytes(range(n)), {"n": n, "list": [1, None, "é"]})  # fmt: skip
        expect(got, wanted, f"order {n}")
        expect((isinstance(order.key, uuid.UUID), order.tags.count()), (True, n), f"key and tags of order {n}")
    Customer.objects.bulk_create([Customer(name=f"many {n:03d}", active=n % 2 == 0) for n in range(200)])
    expect(Customer.objects.filter(name__startswith="many").update(credit=F("credit") + 1), 200, "rows updated")
    customer, made = Customer.objects.get_or_create(name="O'Neil", defaults={"credit": 3})
    expect((made, Customer.objects.get_or_create(name="O'Neil")[1], customer.pk is not None), (True, False, True), "get_or_create")
    Order.objects.get(placed__month=3).delete()
    expect(Order.objects.count(), 2, "orders left")
    User.objects.create_user("ann", "ann@example.org", "secret")
    expect(User.objects.get(username="ann").check_password("secret"), True, "a user of django.contrib.auth")


def queries():
    found = Customer.objects.annotate(n=Count("orders"), sum=Sum("orders__total"), mean=Avg("orders__total")).filter(n__gt=0).values_list("name", "n", "sum", "mean")
    expect(list(found), [("Zoë 日本", 2, decimal.Decimal(3), decimal.Decimal("1.5"))], "a join with groups")
    expect(list(Customer.objects.filter(name__startswith="many").order_by("name").values_list("name", flat=True)[30:33]), ["many 030", "many 031", "many 032"], "a page")
    expect(Customer.objects.filter(Q(name__icontains="ZOË") | Q(name="O'Neil")).count(), 2, "a condition")
    last = Order.objects.filter(customer=OuterRef("pk")).order_by("-placed").values("placed")[:1]
    expect(Customer.objects.annotate(last=Subquery(last)).get(name="Zoë 日本").last, datetime.date(2024, 2, 2), "a subquery")
    ranked = Order.objects.annotate(rank=Window(RowNumber(), partition_by=[F("customer")], order_by=F("placed").desc())).order_by("placed")
    expect([order.rank for order in ranked], [2, 1], "a window")
    expect([row["m"] for row in Order.objects.annotate(m=TruncMonth("placed")).values("m").order_by("m")], [datetime.date(2024, 1, 1), datetime.date(2024, 2, 1)], "months")
    expect(Customer.objects.annotate(both=Concat(Lower("name"), Value("!"))).get(name="O'Neil").both, "o'neil!", "functions")
    expect(Order.objects.filter(details__n=2).count(), 1, "a key of JSON")
    expect(Order.objects.filter(tags__word__in=["red", "green"]).distinct().count(), 2, "many to many")
    expect(len(Order.objects.select_related("customer").prefetch_related("tags")), 2, "related objects")
    expect(Customer.objects.filter(orders__isnull=True).exists(), True, "exists")
    expect(sum(1 for _ in Customer.objects.iterator(chunk_size=50)), 202, "an iterator")


def transactions():
    try:
        with transaction.atomic():
            Tag.objects.create(word="gone")
            raise KeyError
    except KeyError:
        pass
    with transaction.atomic():
        Tag.objects.create(word="kept")
        try:
            with transaction.atomic():
                Tag.objects.create(word="kept")
        except IntegrityError:
            pass
        Tag.objects.create(word="kept too")
    expect(sorted(Tag.objects.values_list("word", flat=True)), ["blue", "green", "kept", "kept too", "red"], "tags")
    with transaction.atomic():
        expect(Tag.objects.select_for_update().get(word="kept").word, "kept", "a row locked")
    try:
        Customer.objects.create(name="broke", credit=-1)
    except IntegrityError as error:
        expect("547" in str(error), True, "a check constraint")
    else:
        raise AssertionError("a check constraint did not hold")


def inspect():
    out = io.StringIO()
    call_command("inspectdb", "shop_order", stdout=out)
    text = out.getvalue()
    for line in ("customer = models.ForeignKey('ShopCustomer'", "size = models.BigIntegerField", "total = models.DecimalField(max_digits=12, decimal_places=4"):
        if line not in text:
            raise AssertionError(f"inspectdb does not say {line}: {text}")
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, "shop_order")
    index = constraints["shop_order_placed"]
    expect((index["columns"], index["orders"], index["unique"]), (["placed", "total"], ["ASC", "DESC"], False), "an index")


def main():
    failed = 0
    for check in (migrate, orm, queries, transactions, inspect):
        try:
            check()
        except Exception as error:  # noqa: BLE001 - every failure is told, and the others run
            failed += 1
            traceback.print_exc(file=sys.stdout)
            print(f"FAILED {check.__name__}: {error!r}"[:1000], flush=True)
        else:
            print(f"ok {check.__name__}", flush=True)
    sys.exit(1 if failed else 0)


main()
