"""Errors of artifacts. Status 422 means that the request is wrong, 502 that the source failed,
503 that a retry can help."""

from ..kit.problems import Problem


class AddressRefused(Problem):
    status, code, title = 422, "artifact_address_refused", "Address of the artifact source not allowed"
    way_out = "Use a plain https host name that resolves to public addresses; `detail` names the problem."


class SourceNameTaken(Problem):
    status, code, title = 409, "artifact_source_name_taken", "Artifact source name already in use"
    way_out = "Choose another name, or remove the existing source first."


class SourceInUse(Problem):
    status, code, title = 409, "artifact_source_in_use", "Artifact source still in use"
    way_out = "Withdraw the source's artifacts first. To stop all deliveries from the source at once, disable it."


class SourceDisabled(Problem):
    status, code, title = 409, "artifact_source_disabled", "Artifact source disabled"
    way_out = "Ask an administrator to enable the source (`gpuaas artifact-source enable`), or use another artifact."


class SourceAway(Problem):
    status, code, title = 503, "artifact_source_away", "Artifact source not reachable"
    way_out = "Retry in a moment. If retries fail, check that the platform can reach the source."
    retryable = True


class SourceRefused(Problem):
    status, code, title = 502, "artifact_source_refused", "Artifact source rejected the request"
    way_out = (
        "Check the artifact's location in the source and the source's credential. `detail` has the source's response."
    )


class ContentWrong(Problem):
    status, code, title = 502, "artifact_content_wrong", "Content does not match the registered digest"
    way_out = (
        "Nothing was delivered. Find out why the content changed, then register the correct content as a new version."
    )


class ContentDamaged(Problem):
    status, code, title = 500, "artifact_content_damaged", "Stored content is corrupted"
    way_out = "Nothing was delivered. Push the same content again to replace the corrupted copy."


class OnItsWay(Problem):
    status, code, title = 503, "artifact_on_its_way", "The artifact is still being downloaded from its source"
    way_out = "Retry in a few seconds; the download continues meanwhile."
    retryable = True


class VersionTaken(Problem):
    status, code, title = 409, "artifact_version_taken", "Artifact version already registered"
    way_out = (
        "Register the content under a new version. A version keeps its content, even after the version was withdrawn."
    )


class ArtifactWithdrawn(Problem):
    status, code, title = 409, "artifact_withdrawn", "Artifact withdrawn"
    way_out = "Use another version of the artifact."


class NotUploaded(Problem):
    status, code, title = 422, "artifact_not_uploaded", "Content of the artifact not uploaded"
    way_out = "Upload the content before you register it; `gpuaas artifact push` does both."


class UploadWrong(Problem):
    status, code, title = 422, "artifact_upload_wrong", "Uploaded content does not match its digest"
    way_out = "Nothing was stored. Compute the SHA-256 of the file again and repeat the upload."


class StorageQuotaExceeded(Problem):
    status, code, title = 409, "artifact_quota_exceeded", "Artifact storage quota exceeded"
    way_out = "Withdraw unneeded artifacts (this deletes their content), or ask the operator for a higher quota."


class DeliveryOver(Problem):
    status, code, title = 410, "artifact_delivery_over", "The delivery of the artifact has ended"
    way_out = "Queue a new task: a delivery is valid for one task, for at most ten minutes."


class NodeNotHeld(Problem):
    status, code, title = 409, "artifact_node_not_held", "Node not allocated to the project"
    way_out = "Deliver to a node that is allocated to the project."
