"""Errors of artifacts. Whose fault it is shows in the status: 422 the request, 502 the source, 503 nobody for long."""

from ..kit.problems import Problem


class AddressRefused(Problem):
    status, code, title = 422, "artifact_address_refused", "The core does not contact this address"
    way_out = "Name the source by one plain https host name that leads to public addresses; `detail` says what is odd."


class SourceNameTaken(Problem):
    status, code, title = 409, "artifact_source_name_taken", "There is an artifact source with this name"
    way_out = "Choose another name, or remove the other source first."


class SourceInUse(Problem):
    status, code, title = 409, "artifact_source_in_use", "Registered artifacts come from this source"
    way_out = "Withdraw them first, or disable the source: then nothing is delivered from it."


class SourceDisabled(Problem):
    status, code, title = 409, "artifact_source_disabled", "The artifact's source is disabled"
    way_out = "Ask whoever runs the source to enable it (`gpuaas artifact-source enable`), or use another artifact."


class SourceAway(Problem):
    status, code, title = 503, "artifact_source_away", "The artifact's source does not answer"
    way_out = "Try again in a moment; if it stays, look whether the core reaches the source."
    retryable = True


class SourceRefused(Problem):
    status, code, title = 502, "artifact_source_refused", "The artifact's source does not give it out"
    way_out = "Check the reference and the source's credential; `detail` has what the source answered."


class ContentWrong(Problem):
    status, code, title = 502, "artifact_content_wrong", "The source gives other content than was registered"
    way_out = "Nothing was delivered. Find out who changed the content; register what is right as a new version."


class ContentDamaged(Problem):
    status, code, title = 500, "artifact_content_damaged", "The store's copy is not what was pushed"
    way_out = "Nothing was delivered. Push the same content again; it takes the damaged copy's place."


class OnItsWay(Problem):
    status, code, title = 503, "artifact_on_its_way", "The artifact is still being read from its source"
    way_out = "Ask again in a few seconds: reading goes on meanwhile."
    retryable = True


class VersionTaken(Problem):
    status, code, title = 409, "artifact_version_taken", "This version is registered already"
    way_out = "Register it under a new version: what was registered never changes, also after it was withdrawn."


class ArtifactWithdrawn(Problem):
    status, code, title = 409, "artifact_withdrawn", "The artifact was withdrawn"
    way_out = "Use another version."


class NotUploaded(Problem):
    status, code, title = 422, "artifact_not_uploaded", "The store does not have this content from you"
    way_out = "Push the content first (`gpuaas artifact push`), then register it."


class UploadWrong(Problem):
    status, code, title = 422, "artifact_upload_wrong", "What arrived has another digest than the address names"
    way_out = "Nothing was kept. Compute the SHA-256 of the file again and send it once more."


class StorageQuotaExceeded(Problem):
    status, code, title = 409, "artifact_quota_exceeded", "The tenant's artifact storage is full"
    way_out = "Withdraw artifacts that nobody needs (their content goes with them), or ask the operator for more."


class DeliveryOver(Problem):
    status, code, title = 410, "artifact_delivery_over", "This delivery is over"
    way_out = "Whoever asked for it asks for a new one: a delivery is for one task and ten minutes."


class NodeNotHeld(Problem):
    status, code, title = 409, "artifact_node_not_held", "The project does not hold this machine"
    way_out = "Deliver to a machine that an allocation of the project holds."
