# What a person does with helm: releases that are applied by the server (the default since version 4) and by helm itself. CLIENT is the
# binary. Nothing is waited for: no controllers run.
export HELM_CACHE_HOME=$HOME/cache HELM_CONFIG_HOME=$HOME/config HELM_DATA_HOME=$HOME/data

mkdir -p chart/templates
cat >chart/Chart.yaml <<END
apiVersion: v2
name: chart
version: 1.0.0
END
cat >chart/values.yaml <<END
image: image:1
replicas: 1
extra: true
selector: web
END
cat >chart/templates/all.yaml <<END
apiVersion: v1
kind: ServiceAccount
metadata: {name: "{{ .Release.Name }}"}
---
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}-secret"}
stringData: {password: "{{ .Values.image }}"}
---
{{- if .Values.extra }}
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-extra", labels: {app: "{{ .Release.Name }}"}}
data: {image: "{{ .Values.image }}"}
---
{{- end }}
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-kept", annotations: {helm.sh/resource-policy: keep}}
data: {image: "{{ .Values.image }}"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "{{ .Release.Name }}"}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "{{ .Release.Name }}"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "{{ .Release.Name }}"}
subjects: [{kind: ServiceAccount, name: "{{ .Release.Name }}", namespace: "{{ .Release.Namespace }}"}]
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {app: "{{ .Values.selector }}"}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}", labels: {app: "{{ .Release.Name }}"}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: "{{ .Values.selector }}"}}
  template:
    metadata: {labels: {app: "{{ .Values.selector }}"}}
    spec:
      serviceAccountName: "{{ .Release.Name }}"
      containers:
      - name: c
        image: "{{ .Values.image }}"
        env: [{name: REPLICAS, value: "{{ .Values.replicas }}"}]
---
apiVersion: $GROUP/v1
kind: Website
metadata: {name: "{{ .Release.Name }}"}
spec: {domain: "{{ .Values.image }}", replicas: {{ .Values.replicas }}}
END
cat >chart/templates/hook.yaml <<END
apiVersion: v1
kind: ConfigMap
metadata:
  name: "{{ .Release.Name }}-hook"
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
data: {k: v}
END

fails() {
  if "$@"; then
    echo "it does not fail: $*"
    exit 1
  fi
}

"$CLIENT" install web chart --server-side=true
fails "$CLIENT" install web chart
"$CLIENT" upgrade web chart --set image=image:2,replicas=2
"$CLIENT" upgrade web chart --set extra=false --dry-run=server
"$CLIENT" upgrade web chart --set extra=false --force-conflicts
fails "$CLIENT" upgrade web chart --set selector=other
"$CLIENT" rollback web 1
"$CLIENT" history web
"$CLIENT" status web
"$CLIENT" get manifest web
"$CLIENT" upgrade --install merged chart --server-side=false
"$CLIENT" upgrade merged chart --set image=image:2,replicas=3,extra=false --server-side=false
"$CLIENT" rollback merged 1 --server-side=false
"$CLIENT" list
"$CLIENT" uninstall merged
"$CLIENT" uninstall web --keep-history
"$CLIENT" uninstall web
