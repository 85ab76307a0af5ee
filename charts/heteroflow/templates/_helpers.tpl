{{- /*
Names are fixed, not the release's: there is one HeteroFlow in a cluster. Its
account, its Epoch and its labels on pods are what policies and pods go by.
*/}}
{{- define "heteroflow.name" -}}
heteroflow-scheduler
{{- end }}

{{- /* The user as whom the scheduler comes to the API server. */}}
{{- define "heteroflow.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "heteroflow.name" . }}
{{- end }}

{{- /* By which the pods of the Deployment are found. Never to be changed. */}}
{{- define "heteroflow.selector" -}}
app.kubernetes.io/name: {{ include "heteroflow.name" . }}
{{- end }}

{{- define "heteroflow.labels" -}}
{{ include "heteroflow.selector" . }}
app.kubernetes.io/part-of: heteroflow
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* The reference of an image: by digest where one is given, else by tag, else by version. */}}
{{- define "heteroflow.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .version }}
{{- end }}
{{- end }}

{{- /*
The version of kube-scheduler: it must not be newer than the API server, so it is
the cluster's own unless a tag says otherwise. Vendors append to the version,
upstream's images have none of that.
*/}}
{{- define "heteroflow.kubernetes" -}}
{{- regexFind "^v?[0-9]+\\.[0-9]+\\.[0-9]+" (.Values.kubeScheduler.image.tag | default .Capabilities.KubeVersion.Version) }}
{{- end }}

{{- define "heteroflow.hardened" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* cert-manager fills in the bundle; otherwise the scheduler does, from the certificate that it has made. */}}
{{- define "heteroflow.injection" -}}
{{- if eq .Values.certificates.mode "certManager" -}}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/heteroflow-webhooks
{{- end }}
{{- end }}

{{- define "heteroflow.lookedAt" -}}
# What runs the cluster must not wait for us, nor we for ourselves. A component
# that puts pods with cards on nodes by itself (spec.nodeName) is refused: its
# namespace goes among admission.excludedNamespaces, if it has to.
namespaceSelector:
  matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: {{ concat (list "kube-system" .Release.Namespace) .Values.admission.excludedNamespaces | uniq | toJson }}
{{- end }}
