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
