"""The application's tables, with every kind of field that has a type of its own."""

import uuid

from django.db import models


class Tag(models.Model):
    word = models.CharField(max_length=30, unique=True)


class Customer(models.Model):
    name = models.CharField(max_length=50, db_index=True)
    credit = models.DecimalField(max_digits=9, decimal_places=2, default=0)
    since = models.DateTimeField(auto_now_add=True)
    active = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(credit__gte=0), name="shop_credit_not_negative"),
            models.UniqueConstraint(fields=["name"], condition=models.Q(active=True), name="shop_name_of_active"),
        ]


class Order(models.Model):
    key = models.UUIDField(primary_key=True, default=uuid.uuid4)
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="orders")
    tags = models.ManyToManyField(Tag)
    placed = models.DateField()
    hour = models.TimeField(null=True)
    took = models.DurationField(null=True)
    total = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    weight = models.FloatField(null=True)
    size = models.BigIntegerField(null=True)
    note = models.TextField(blank=True)
    picture = models.BinaryField(null=True)
    details = models.JSONField(null=True)

    class Meta:
        ordering = ["placed"]
        indexes = [models.Index(fields=["placed", "-total"], name="shop_order_placed")]
