{{- /*
What cannot work is refused here, all of it at once and with the remedy: the operator would refuse most of it as well, but
only when the one that runs has been replaced. A value that is at its default is never refused.
*/ -}}
{{- define "raykeeper.refuse" -}}
{{- $not := include "raykeeper.notBuilt" . | fromYaml }}
{{- $said := list }}
{{- if not (hasKey (.Values.crds | default dict) "serviceAccountName") }}
{{- $said = append $said "These are the values of another chart. Upgrade with --reset-then-reuse-values instead of --reuse-values." }}
{{- end }}
{{- with .Values.image }}
{{- if hasSuffix "kuberay/operator" .repository }}
{{- $said = append $said (printf "image.repository %s is KubeRay's image. Leave image.repository and image.tag out, or where a release brings them along: --set image.repository=docker.io/raykeeper/raykeeper,image.tag=" .repository) }}
{{- else if and (hasSuffix "raykeeper/raykeeper" .repository) (or (regexMatch "^v[0-9]" (toString .tag)) (eq (toString .tag) "nightly")) }}
{{- $said = append $said (printf "image.tag %v is a tag of KubeRay's image. Leave image.tag out, or where a release brings it along: --set image.tag=" .tag) }}
{{- end }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElectionEnabled) }}
{{- $said = append $said "replicas above 1 need leaderElectionEnabled: without it all of them would act at once." }}
{{- end }}
{{- with .Values.batchScheduler }}
{{- $why := get $not.fields "batchScheduler" }}
{{- if and $why (or .enabled (not (has .name (list nil "" "default")))) }}
{{- $said = append $said (printf "batchScheduler: %s." $why) }}
{{- end }}
{{- end }}
{{- range $field, $value := omit (.Values.configuration | default dict) "enabled" }}
{{- if and $value (hasKey $not.fields $field) }}
{{- $said = append $said (printf "configuration.%s: %s." $field (get $not.fields $field)) }}
{{- else if and $value (not $.Values.configuration.enabled) }}
{{- $said = append $said (printf "configuration.%s has no effect without configuration.enabled. Set that to true." $field) }}
{{- end }}
{{- end }}
{{- range .Values.featureGates }}
{{- if not (hasKey $not.gates .name) }}
{{- $said = append $said (printf "featureGates: there is no feature gate %s. Leave it out; there are %s." .name (join ", " (keys $not.gates | sortAlpha))) }}
{{- else if eq (toString .enabled) (dig .name "value" "" $not.gates) }}
{{- $said = append $said (printf "featureGates: %s=%v: %s." .name .enabled (dig .name "why" "" $not.gates)) }}
{{- end }}
{{- end }}
{{- range .Values.env }}
{{- if eq (toString .value | lower) (dig .name "value" "none" $not.variables) }}
{{- $said = append $said (printf "env: %s=%v: %s." .name .value (dig .name "why" "" $not.variables)) }}
{{- end }}
{{- end }}
{{- range .Values.env }}
{{- if has .name (list "ENABLE_WEBHOOKS" "RAYKEEPER_WEBHOOK_NAME") }}
{{- $said = append $said (printf "env: %s. Set webhook.enabled instead, which installs what belongs to it." .name) }}
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
