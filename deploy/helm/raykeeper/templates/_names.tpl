{{- /* Names and labels; KubeRay's, so that a release of its chart is upgraded in place: a Deployment's selector never changes. */ -}}
{{- define "raykeeper.name" -}}
{{- .Values.nameOverride | default "kuberay-operator" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "raykeeper.fullname" -}}
{{- $name := include "raykeeper.name" . }}
{{- $qualified := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- .Values.fullnameOverride | default $qualified | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "raykeeper.component" -}}
{{- .Values.componentOverride | default "kuberay-operator" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "raykeeper.selector" -}}
app.kubernetes.io/name: {{ include "raykeeper.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "raykeeper.labels" -}}
{{ include "raykeeper.selector" . }}
app.kubernetes.io/component: {{ include "raykeeper.component" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "raykeeper.serviceAccount" -}}
{{- $standard := ternary (include "raykeeper.fullname" .) "default" .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default $standard }}
{{- end }}

{{- /* Of the webhook's Service and Secret. */ -}}
{{- define "raykeeper.webhook" -}}
{{- printf "%s-webhook" (include "raykeeper.fullname" . | trunc 55 | trimSuffix "-") }}
{{- end }}

{{- /* Whose objects it is asked about: of the namespaces that are watched. */ -}}
{{- define "raykeeper.webhook.namespaces" -}}
{{- with include "raykeeper.watched" . }}
{{- dict "matchExpressions" (list (dict "key" "kubernetes.io/metadata.name" "operator" "In" "values" (splitList "," .))) | toJson }}
{{- else }}
{{- "{}" }}
{{- end }}
{{- end }}

{{- define "raykeeper.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}

{{- /* The namespaces that are watched, comma separated; empty for all. */ -}}
{{- define "raykeeper.watched" -}}
{{- if .Values.watchNamespace }}
{{- join "," .Values.watchNamespace }}
{{- else if .Values.singleNamespaceInstall }}
{{- .Release.Namespace }}
{{- end }}
{{- end }}

{{- define "raykeeper.logFile" -}}
{{- if and .Values.logging.baseDir .Values.logging.fileName }}
{{- printf "%s/%s" (trimSuffix "/" .Values.logging.baseDir) .Values.logging.fileName }}
{{- end }}
{{- end }}

{{- /* Name of the hook's ServiceAccount, or empty where the hook does not run. */ -}}
{{- define "raykeeper.crds.serviceAccount" -}}
{{- if .Values.crds.apply }}
{{- if .Values.crds.serviceAccountName }}
{{- .Values.crds.serviceAccountName }}
{{- else if .Values.rbacEnable }}
{{- printf "%s-crds" (include "raykeeper.fullname" . | trunc 58) }}
{{- end }}
{{- end }}
{{- end }}
