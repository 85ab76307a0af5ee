{{- /* Made by `go test ./pkg/codec -run Golden -update`. Do not edit. */}}
{{- define "heteroflow.owned" -}}
^((heteroflow\.io/allocation|heteroflow\.io/containers|heteroflow\.io/epoch|heteroflow\.io/port|heteroflow\.io/preempt-count|heteroflow\.io/preempted-by|heteroflow\.io/preempted-from|hami\.io/bind-node|hami\.io/device-allocated|hami\.io/vgpu-node|hami\.io/vgpu-time|hami\.io/bind-phase|hami\.io/bind-time|hami\.io/vgpu-mig-allocations|hami\.io/kunlun-allocated|hami\.io/amd-cu-allocated)|(heteroflow\.io/visible-devices-|heteroflow\.io/mem-limit-|heteroflow\.io/core-limit-)[0-9]+|hami\.io/.+(-devices-to-allocate|-devices-allocated))$
{{- end }}
{{- define "heteroflow.boundBy" -}}
heteroflow.io/bound-by
{{- end }}
