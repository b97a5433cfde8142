from __future__ import annotations

from rest_framework.exceptions import APIException, NotFound, PermissionDenied


class WebhookNotFound(NotFound):
    meaning = (
        "The webhook does not exist, belongs to another user, or is outside the caller's binding."
    )
    default_code = "WEBHOOK_NOT_FOUND"
    default_detail = "The webhook does not exist."
    advice = "GET /api/v1/webhooks lists your webhooks with their ids."


class DeliveryNotFound(NotFound):
    meaning = (
        "The webhook has no delivery with this id. The service deletes deliveries after 30 days."
    )
    default_code = "DELIVERY_NOT_FOUND"
    default_detail = (
        "The webhook has no delivery with this id. The service deletes deliveries after 30 days."
    )


class WebhookDisabled(APIException):
    meaning = "A disabled webhook receives no messages."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "WEBHOOK_DISABLED"
    default_detail = "The webhook is disabled. Enable it first."


class WebhookDisabledByOperator(PermissionDenied):
    meaning = "Only an operator can enable a webhook that an operator has disabled."
    default_code = "WEBHOOK_DISABLED_BY_OPERATOR"
    default_detail = "An operator has disabled the webhook."
    advice = "Ask an operator to enable the webhook in the admin, under Webhook endpoints."


class TooManyWebhooks(APIException):
    meaning = "The owner has reached the maximum number of webhooks."
    status_code = 400
    rpc_status = "FAILED_PRECONDITION"
    default_code = "TOO_MANY_WEBHOOKS"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"The owner has {most} webhooks, which is the maximum. Delete unused webhooks."
        )
        self.metadata = {"limit": str(most)}
