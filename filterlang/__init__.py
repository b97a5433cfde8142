"""A filter language for Django REST framework lists: text -> grammar -> nodes -> ``Q``.

A list declares what may be filtered, once, as a django-filter ``FilterSet``, and a view names it:

>>> class WorkloadFilters(django_filters.FilterSet):
...     namespace = django_filters.CharFilter()
...     kind = filterlang.filters.EnumFilter(choices=Workload.Kind.choices)
...     labels = filterlang.filters.LabelsFilter()
>>> class WorkloadView(ListAPIView):
...     filter_backends = [filterlang.backend.FilterLanguageBackend]
...     filterset_class = WorkloadFilters

The modules, in the order in which a text passes through them: ``backend``, ``compiler``,
``parser`` (with ``grammar`` and ``nodes``, and ``diagnosis`` when the grammar does not match),
``fields`` and ``fieldtypes`` (over ``filters``), ``lookups``. Every refusal is an
``errors.FilterError``.
"""
