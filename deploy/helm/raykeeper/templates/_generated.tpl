{{- /* Made by `npm run generate` from hack/generate/deploy.ts. Do not edit. */ -}}
{{- define "raykeeper.operatorRules" -}}
- apiGroups:
    - ray.io
  resources:
    - rayjobs
  verbs:
    - get
    - list
    - watch
    - patch
    - delete
- apiGroups:
    - ray.io
  resources:
    - rayjobs/status
  verbs:
    - patch
- apiGroups:
    - ray.io
  resources:
    - rayjobs/finalizers
  verbs:
    - update
- apiGroups:
    - ray.io
  resources:
    - rayclusters
  verbs:
    - get
    - list
    - watch
    - create
    - patch
    - delete
- apiGroups:
    - ray.io
  resources:
    - rayclusters/status
  verbs:
    - patch
- apiGroups:
    - ray.io
  resources:
    - rayclusters/finalizers
  verbs:
    - update
- apiGroups:
    - ""
  resources:
    - pods
  verbs:
    - get
    - list
    - watch
    - create
    - delete
- apiGroups:
    - ""
  resources:
    - services
  verbs:
    - get
    - list
    - watch
    - create
    - delete
- apiGroups:
    - ""
  resources:
    - secrets
  verbs:
    - get
    - create
- apiGroups:
    - batch
  resources:
    - jobs
  verbs:
    - get
    - list
    - watch
    - create
    - patch
    - delete
- apiGroups:
    - events.k8s.io
  resources:
    - events
  verbs:
    - create
    - patch
    - list
{{- if .Values.useKubernetesProxy }}
- apiGroups:
    - ""
  resources:
    - services/proxy
  verbs:
    - get
    - create
    - delete
{{- end }}
{{- end }}
{{- define "raykeeper.leaderElectionRules" -}}
- apiGroups:
    - coordination.k8s.io
  resources:
    - leases
  verbs:
    - create
- apiGroups:
    - coordination.k8s.io
  resources:
    - leases
  resourceNames:
    - ray-operator-leader
  verbs:
    - get
    - update
{{- end }}
{{- define "raykeeper.webhookRules" -}}
- apiGroups:
    - ""
  resources:
    - secrets
  verbs:
    - create
- apiGroups:
    - ""
  resources:
    - secrets
  resourceNames:
    - {{ include "raykeeper.webhook" . }}
  verbs:
    - get
    - update
{{- end }}
{{- define "raykeeper.webhookConfigurationRules" -}}
- apiGroups:
    - admissionregistration.k8s.io
  resources:
    - validatingwebhookconfigurations
  resourceNames:
    - {{ include "raykeeper.webhook" . }}.{{ .Release.Namespace }}
  verbs:
    - get
    - patch
{{- end }}
{{- define "raykeeper.webhooks" -}}
- name: vrayjob.kb.io
  admissionReviewVersions:
    - v1
  clientConfig:
    service:
      name: {{ include "raykeeper.webhook" . }}
      namespace: {{ .Release.Namespace }}
      path: /validate-ray-io-v1-rayjob
      port: 443
  failurePolicy: Fail
  sideEffects: None
  timeoutSeconds: 10
  rules:
    - apiGroups:
        - ray.io
      apiVersions:
        - v1
      operations:
        - CREATE
        - UPDATE
      resources:
        - rayjobs
      scope: Namespaced
  matchConditions:
    - name: not-by-the-operator
      expression: request.userInfo.username != "system:serviceaccount:{{ .Release.Namespace }}:{{ include "raykeeper.serviceAccount" . }}"
    - name: not-being-deleted
      expression: "!has(object.metadata.deletionTimestamp)"
    - name: spec-changes
      expression: oldObject == null || object.spec != oldObject.spec
  namespaceSelector: {{ include "raykeeper.webhook.namespaces" . }}
- name: vraycluster.kb.io
  admissionReviewVersions:
    - v1
  clientConfig:
    service:
      name: {{ include "raykeeper.webhook" . }}
      namespace: {{ .Release.Namespace }}
      path: /validate-ray-io-v1-raycluster
      port: 443
  failurePolicy: Fail
  sideEffects: None
  timeoutSeconds: 10
  rules:
    - apiGroups:
        - ray.io
      apiVersions:
        - v1
      operations:
        - CREATE
        - UPDATE
      resources:
        - rayclusters
      scope: Namespaced
  matchConditions:
    - name: not-by-the-operator
      expression: request.userInfo.username != "system:serviceaccount:{{ .Release.Namespace }}:{{ include "raykeeper.serviceAccount" . }}"
    - name: not-being-deleted
      expression: "!has(object.metadata.deletionTimestamp)"
    - name: spec-changes
      expression: oldObject == null || object.spec != oldObject.spec
  namespaceSelector: {{ include "raykeeper.webhook.namespaces" . }}
{{- end }}
{{- define "raykeeper.crdRules" -}}
- apiGroups:
    - apiextensions.k8s.io
  resources:
    - customresourcedefinitions
  verbs:
    - create
- apiGroups:
    - apiextensions.k8s.io
  resources:
    - customresourcedefinitions
  resourceNames:
    - rayclusters.ray.io
    - rayjobs.ray.io
  verbs:
    - get
    - patch
{{- end }}
{{- define "raykeeper.userRoles" -}}
rayjob-editor-role:
  - apiGroups:
      - ray.io
    resources:
      - rayjobs
    verbs:
      - create
      - delete
      - get
      - list
      - patch
      - update
      - watch
  - apiGroups:
      - ray.io
    resources:
      - rayjobs/status
    verbs:
      - get
rayjob-viewer-role:
  - apiGroups:
      - ray.io
    resources:
      - rayjobs
    verbs:
      - get
      - list
      - watch
  - apiGroups:
      - ray.io
    resources:
      - rayjobs/status
    verbs:
      - get
{{- end }}
{{- define "raykeeper.refused" -}}
gates:
  RayClusterStatusConditions:
    value: "false"
    why: "cannot be switched off: decisions read the conditions it gates; leave it on"
  RayJobDeletionPolicy: {}
  RayMultiHostIndexing: {}
  RayServiceIncrementalUpgrade: {}
  SidecarSubmitterRestart: {}
  RayCronJob:
    value: "true"
    why: RayCronJob is not supported yet; leave the gate off
  RayClusterNetworkPolicy:
    value: "true"
    why: network policies are not supported yet; leave the gate off
  RayClusterMTLS:
    value: "true"
    why: TLS is not supported yet; leave the gate off
  RayClusterHistoryServer:
    value: "true"
    why: the history server's collector is not supported yet; leave the gate off
  GCSFaultToleranceEmbeddedStorage:
    value: "true"
    why: fault tolerance of the GCS is not supported yet; leave the gate off
  KubernetesWAS:
    value: "true"
    why: workload-aware scheduling is not supported yet; leave the gate off
variables:
  RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS:
    pattern: ^[0-9]{1,15}$
    expected: a whole number, 0 or more
  RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS:
    pattern: ^0*[1-9][0-9]{0,14}$
    expected: a whole number, 1 or more
  RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV:
    pattern: ^[0-9]{1,15}$
    expected: a whole number, 0 or more
  ENABLE_RANDOM_POD_DELETE:
    value: "true"
    why: autoscaling is not supported yet; unset it
  ENABLE_GCS_FT_REDIS_CLEANUP:
    value: "false"
    why: fault tolerance of the GCS is not supported yet; unset it
  ENABLE_ZERO_DOWNTIME:
    value: "false"
    why: RayService is not supported yet; unset it
  USE_INGRESS_ON_OPENSHIFT:
    value: "true"
    why: ingresses are not supported yet; unset it
fields:
  batchScheduler: batch schedulers are not supported yet; remove it (Kueue works without)
  enableBatchScheduler: batch schedulers are not supported yet; remove it (Kueue works without)
{{- end }}
