{{- /* What the operator is told, as flags or as a file; where its Pods may run, and as whom. */ -}}

{{- define "raykeeper.arguments" -}}
{{- $gates := list }}
{{- range .Values.featureGates }}
{{- $gates = append $gates (printf "%s=%t" .name .enabled) }}
{{- end }}
{{- $arguments := list }}
{{- if .Values.configuration.enabled }}
{{- $arguments = append $arguments "--config=/etc/kuberay/config.yaml" }}
{{- else }}
{{- range $flag, $value := include "raykeeper.choices" . | fromYaml }}
{{- $arguments = append $arguments (printf "--%s=%v" $flag $value) }}
{{- end }}
{{- end }}
{{- with $gates }}
{{- $arguments = append $arguments (printf "--feature-gates=%s" (join "," .)) }}
{{- end }}
{{- toYaml $arguments }}
{{- end }}

{{- /* By flag. What is absent has the operator's own default. */ -}}
{{- define "raykeeper.choices" -}}
enable-leader-election: {{ .Values.leaderElectionEnabled }}
enable-metrics: {{ .Values.metrics.enabled }}
reconcile-concurrency: {{ .Values.reconcileConcurrency }}
qps: {{ .Values.kubeClient.qps }}
burst: {{ .Values.kubeClient.burst }}
log-stdout-encoder: {{ .Values.logging.stdoutEncoder }}
{{- with include "raykeeper.logFile" . }}
log-file-path: {{ . }}
log-file-encoder: {{ $.Values.logging.fileEncoder }}
{{- end }}
{{- with include "raykeeper.watched" . }}
watch-namespace: {{ . }}
{{- end }}
{{- if hasKey .Values "useKubernetesProxy" }}
use-kubernetes-proxy: {{ .Values.useKubernetesProxy | default false }}
{{- end }}
{{- end }}

{{- /* The same, with what only a file can have: a flag's name in camel case is the field's, save for --log-file-path. */ -}}
{{- define "raykeeper.configuration" -}}
{{- $fields := dict "apiVersion" "config.ray.io/v1alpha1" "kind" "Configuration" }}
{{- range $flag, $value := include "raykeeper.choices" . | fromYaml }}
{{- $words := splitList "-" (trimSuffix "-path" $flag) }}
{{- $field := first $words }}
{{- range rest $words }}
{{- $field = print $field (title .) }}
{{- end }}
{{- $fields = set $fields $field $value }}
{{- end }}
{{- range $field, $value := omit .Values.configuration "enabled" }}
{{- with $value }}
{{- $fields = set $fields $field . }}
{{- end }}
{{- end }}
{{- toYaml $fields }}
{{- end }}

{{- /* A list, empty without the webhook. */ -}}
{{- define "raykeeper.webhook.env" -}}
{{- if .Values.webhook.enabled }}
- name: ENABLE_WEBHOOKS
  value: "true"
- name: RAYKEEPER_WEBHOOK_NAME
  value: {{ include "raykeeper.webhook" . }}
{{- else }}
[]
{{- end }}
{{- end }}

{{- define "raykeeper.placement" -}}
{{- $placement := pick .Values "imagePullSecrets" "nodeSelector" "affinity" "tolerations" "priorityClassName" }}
{{- $placement = set $placement "securityContext" .Values.podSecurityContext }}
{{- if and (kindIs "bool" .Values.hostUsers) (semverCompare ">=1.33.0-0" .Capabilities.KubeVersion.Version) }}
{{- $placement = set $placement "hostUsers" .Values.hostUsers }}
{{- end }}
{{- include "raykeeper.chosen" $placement }}
{{- end }}

{{- /* For a Pod that is no operator: what keeps operators apart must not keep it off the only node. */ -}}
{{- define "raykeeper.placementOfHook" -}}
{{- $values := deepCopy .Values.AsMap }}
{{- $values = set $values "affinity" (pick (.Values.affinity | default dict) "nodeAffinity") }}
{{- include "raykeeper.placement" (dict "Values" $values "Capabilities" .Capabilities) }}
{{- end }}

{{- /* As YAML, without what is empty; false is not. */ -}}
{{- define "raykeeper.chosen" -}}
{{- range $field, $value := . }}
{{- if or $value (kindIs "bool" $value) }}
{{ toYaml (dict $field $value) }}
{{- end }}
{{- end }}
{{- end }}
