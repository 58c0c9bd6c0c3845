# What a program does with the Python client (package kubernetes, as Debian has it). CLIENT is the interpreter.
"$CLIENT" - <<'END'
import os
from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException

config.load_kube_config()
namespace, group = os.environ["NAMESPACE"], os.environ["GROUP"]
core, apps, custom = client.CoreV1Api(), client.AppsV1Api(), client.CustomObjectsApi()


def fails(code, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ApiException as e:
        assert e.status == code, e
        return
    raise AssertionError("no error")


def config_map(name):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"app": "x"}), data={"k": "v"})


a = core.create_namespaced_config_map(namespace, config_map("a"), field_manager="author")
core.create_namespaced_config_map(namespace, config_map("dry"), dry_run="All", pretty="true")
fails(409, core.create_namespaced_config_map, namespace, config_map("a"))
core.read_namespaced_config_map("a", namespace)
fails(404, core.read_namespaced_config_map, "none", namespace)
a.data["k"] = "2"
core.replace_namespaced_config_map("a", namespace, a)
fails(409, core.replace_namespaced_config_map, "a", namespace, a)
core.patch_namespaced_config_map("a", namespace, {"data": {"p": "1"}})
core.patch_namespaced_config_map("a", namespace, [{"op": "add", "path": "/data/j", "value": "1"}])
core.list_namespaced_config_map(namespace, label_selector="app=x", limit=1)
for event in watch.Watch().stream(core.list_namespaced_config_map, namespace, timeout_seconds=2):
    break
deployment = client.V1Deployment(
    metadata=client.V1ObjectMeta(name="web"),
    spec=client.V1DeploymentSpec(
        selector=client.V1LabelSelector(match_labels={"app": "web"}),
        template=client.V1PodTemplateSpec(
            metadata=client.V1ObjectMeta(labels={"app": "web"}),
            spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="image:1")]))))
apps.create_namespaced_deployment(namespace, deployment)
apps.patch_namespaced_deployment("web", namespace, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "image:2"}]}}}})
apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}})
apps.read_namespaced_deployment_status("web", namespace)
pod = client.V1Pod(metadata=client.V1ObjectMeta(name="p"), spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="image:1")]))
core.create_namespaced_pod(namespace, pod)
core.create_namespaced_pod_eviction("p", namespace, client.V1Eviction(metadata=client.V1ObjectMeta(name="p", namespace=namespace)))
site = {"apiVersion": group + "/v1", "kind": "Website", "metadata": {"name": "site"}, "spec": {"domain": "a.example"}}
custom.create_namespaced_custom_object(group, "v1", namespace, "websites", site)
custom.patch_namespaced_custom_object(group, "v1", namespace, "websites", "site", {"spec": {"domain": "b.example"}})
custom.patch_namespaced_custom_object_status(group, "v1", namespace, "websites", "site", {"status": {"url": "u"}})
custom.list_namespaced_custom_object(group, "v1", namespace, "websites")
custom.delete_namespaced_custom_object(group, "v1", namespace, "websites", "site", body=client.V1DeleteOptions(propagation_policy="Background"))
resources = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="v1", kind="ConfigMap")
resources.create(body={"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "d"}}, namespace=namespace)
resources.patch(name="d", namespace=namespace, body={"data": {"k": "v"}}, content_type="application/merge-patch+json")
resources.delete(name="d", namespace=namespace)
apps.delete_namespaced_deployment("web", namespace, propagation_policy="Orphan", grace_period_seconds=5)
core.delete_namespaced_config_map("a", namespace, body=client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=a.metadata.uid)))
fails(404, core.delete_namespaced_config_map, "a", namespace)
core.delete_collection_namespaced_config_map(namespace, label_selector="app=x")
END
