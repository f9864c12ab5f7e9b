{{- /*
A role and what binds it to a ServiceAccount.
Of `kind` Role or ClusterRole, `name`, `namespace` (of a Role), `rules` as text, `serviceAccount`, and `annotations` if any.
*/ -}}
{{- define "raykeeper.bound" -}}
{{- $root := .root }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  {{- include "raykeeper.bound.metadata" . | nindent 2 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  {{- include "raykeeper.bound.metadata" . | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .serviceAccount }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}

{{- define "raykeeper.bound.metadata" -}}
name: {{ .name }}
{{- if eq .kind "Role" }}
namespace: {{ .namespace }}
{{- end }}
labels:
  {{- include "raykeeper.labels" .root | nindent 2 }}
{{- with .annotations }}
annotations:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}
