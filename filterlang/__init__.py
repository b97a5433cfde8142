"""A filter language for Django REST framework lists: text -> grammar -> nodes -> ``Q``.

A django-filter ``FilterSet`` declares the filterable fields of a list, and a view refers to it:

>>> class WorkloadFilters(django_filters.FilterSet):
...     namespace = django_filters.CharFilter()
...     kind = filterlang.filters.EnumFilter(choices=Workload.Kind.choices)
...     labels = filterlang.filters.LabelsFilter()
>>> class WorkloadView(ListAPIView):
...     filter_backends = [filterlang.backend.FilterLanguageBackend]
...     filterset_class = WorkloadFilters

A text passes through these modules: ``backend``, ``compiler``, ``parser`` (with ``grammar`` and
``nodes``, and ``diagnosis`` if the grammar does not match), ``fields`` and ``fieldtypes`` (based on
``filters``), and ``lookups``. Every rejected filter raises ``errors.FilterError``.
"""
