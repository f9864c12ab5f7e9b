{{- /*
What cannot work is refused here, all of it at once and with the remedy: the operator would refuse most of it as well, but
only when the one that runs has been replaced. A value that is at its default is never refused.
*/ -}}
{{- define "raykeeper.refuse" -}}
{{- $refused := include "raykeeper.refused" . | fromYaml }}
{{- $said := list }}
{{- if not (or (hasKey (.Values.crds | default dict) "serviceAccountName") (hasKey .Values "webhook")) }}
{{- $said = append $said "These are the values of another chart. Upgrade with --reset-then-reuse-values instead of --reuse-values." }}
{{- else }}
{{- range $missing := include "raykeeper.missing" . | fromYamlArray }}
{{- $said = append $said (printf "%s is null, and the chart cannot do without. Leave it out for its default, or give it a value." $missing) }}
{{- end }}
{{- end }}
{{- with .Values.image }}
{{- if hasSuffix "kuberay/operator" (.repository | default "") }}
{{- $said = append $said (printf "image.repository %s is KubeRay's image. Leave image.repository and image.tag out, or where a release brings them along: --set image.repository=docker.io/raykeeper/raykeeper,image.tag=" .repository) }}
{{- else if and (hasSuffix "raykeeper/raykeeper" (.repository | default "")) (or (regexMatch "^v[0-9]" (toString .tag)) (eq (toString .tag) "nightly")) }}
{{- $said = append $said (printf "image.tag %v is a tag of KubeRay's image. Leave image.tag out, or where a release brings it along: --set image.tag=" .tag) }}
{{- end }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElectionEnabled) }}
{{- $said = append $said "replicas above 1 need leaderElectionEnabled: without it all of them would act at once." }}
{{- end }}
{{- with .Values.batchScheduler }}
{{- $why := get $refused.fields "batchScheduler" }}
{{- if and $why (or .enabled (not (has .name (list nil "" "default")))) }}
{{- $said = append $said (printf "batchScheduler: %s." $why) }}
{{- end }}
{{- end }}
{{- range $field, $value := omit (.Values.configuration | default dict) "enabled" }}
{{- if and $value (hasKey $refused.fields $field) }}
{{- $said = append $said (printf "configuration.%s: %s." $field (get $refused.fields $field)) }}
{{- else if and $value (not $.Values.configuration.enabled) }}
{{- $said = append $said (printf "configuration.%s has no effect without configuration.enabled. Set that to true." $field) }}
{{- end }}
{{- end }}
{{- range $field := list "defaultPodAnnotations" "defaultPodLabels" }}
{{- range $key, $_ := index ($.Values.configuration | default dict) $field }}
{{- if regexMatch "^([^/]*\\.)?(ray\\.io|raykeeper\\.dev)/" $key }}
{{- $said = append $said (printf "configuration.%s must be a map without %q, which the operator sets itself." $field $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $field := list "defaultContainerEnvs" "headSidecarContainers" "workerSidecarContainers" }}
{{- $names := list }}
{{- range index ($.Values.configuration | default dict) $field }}
{{- if has .name $names }}
{{- $said = append $said (printf "configuration.%s has two of the name %s. Leave one out." $field .name) }}
{{- else if and .image (eq .name "ray-job-submitter") }}
{{- $said = append $said (printf "configuration.%s: %s is the name of the operator's own container. Give it another." $field .name) }}
{{- else if and (hasKey . "value") .valueFrom }}
{{- $said = append $said (printf "configuration.%s: %s has value and valueFrom. Leave one out." $field .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- end }}
{{- range .Values.featureGates }}
{{- if not (hasKey $refused.gates .name) }}
{{- $said = append $said (printf "featureGates: there is no feature gate %s. Leave it out; there are %s." .name (join ", " (keys $refused.gates | sortAlpha))) }}
{{- else if eq (toString .enabled) (dig .name "value" "" $refused.gates) }}
{{- $said = append $said (printf "featureGates: %s=%v: %s." .name .enabled (dig .name "why" "" $refused.gates)) }}
{{- end }}
{{- end }}
{{- range .Values.env }}
{{- $rule := get $refused.variables .name | default dict }}
{{- if not (or (kindIs "invalid" .value) (kindIs "string" .value)) }}
{{- $said = append $said (printf "env: %s: a variable's value is a text, and %v is none. Write it in quotes, or with --set-string." .name .value) }}
{{- end }}
{{- if and $rule.why (eq (toString .value | lower) $rule.value) }}
{{- $said = append $said (printf "env: %s=%v: %s." .name .value $rule.why) }}
{{- else if and $rule.pattern (kindIs "string" .value) .value (not (regexMatch $rule.pattern .value)) }}
{{- $said = append $said (printf "env: %s must be %s, not %q." .name $rule.expected .value) }}
{{- end }}
{{- end }}
{{- range .Values.env }}
{{- if has .name (list "ENABLE_WEBHOOKS" "RAYKEEPER_WEBHOOK_NAME") }}
{{- $said = append $said (printf "env: %s. Set webhook.enabled instead, which installs what belongs to it." .name) }}
{{- end }}
{{- if eq .name "RAYKEEPER_WEBHOOK_CERT_DIR" }}
{{- $said = append $said (printf "env: %s. Set webhook.secretName instead; the chart mounts that where the operator looks." .name) }}
{{- end }}
{{- if and (eq .name "RAYKEEPER_WEBHOOK_ADDRESS") (kindIs "string" .value) .value (not (regexMatch "^(\\[[^\\]]+\\]|[^:\\[\\]]*):9443$" .value)) }}
{{- $said = append $said (printf "env: %s must end in :9443, where the chart's Service looks for the webhook, and %q does not. Leave it out." .name .value) }}
{{- end }}
{{- end }}
{{- if dig "nodeEventForwarder" "enabled" false .Values.AsMap }}
{{- $said = append $said "nodeEventForwarder.enabled is not supported yet. Leave it out." }}
{{- end }}
{{- if dig "admissionWebhooks" "enabled" false .Values.AsMap }}
{{- $said = append $said "admissionWebhooks.enabled is called webhook.enabled here." }}
{{- end }}
{{- if $said }}
{{- fail (printf "\n\n  %s\n" (join "\n  " $said)) }}
{{- end }}
{{- end }}

{{- /* What has no meaning without a value. Others may be null, which takes the chart's default away: Kubernetes' own holds, or false. */ -}}
{{- define "raykeeper.needed" -}}
- image.repository
- serviceAccount.create
- crds
- webhook.enabled
- logging.stdoutEncoder
- logging.fileEncoder
- configuration
- metrics.enabled
- metrics.serviceMonitor
- operatorCommand
- leaderElectionEnabled
- reconcileConcurrency
- kubeClient.qps
- kubeClient.burst
- livenessProbe
- readinessProbe
- service.port
{{- end }}

{{- /* Of that what is null, a list; a section that is null as a whole by its own name. */ -}}
{{- define "raykeeper.missing" -}}
{{- $missing := list }}
{{- range include "raykeeper.needed" . | fromYamlArray }}
{{- $here := $.Values.AsMap }}
{{- $path := list }}
{{- range splitList "." . }}
{{- if not (kindIs "invalid" $here) }}
{{- $path = append $path . }}
{{- $here = index $here . }}
{{- end }}
{{- end }}
{{- if kindIs "invalid" $here }}
{{- $missing = append $missing (join "." $path) }}
{{- end }}
{{- end }}
{{- $missing | uniq | toYaml }}
{{- end }}
