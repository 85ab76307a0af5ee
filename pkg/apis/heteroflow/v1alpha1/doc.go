// Package v1alpha1 holds the objects of group heteroflow.io, version v1alpha1:
// what administrators write and the API server stores. The scheduler's
// configuration file is a manifest of SchedulerPolicy.
//
// The types say what may be written, with units and bounds; package codec reads
// and judges them. There are no methods here but the generated deep copies.
//
// +k8s:deepcopy-gen=package
// +groupName=heteroflow.io
package v1alpha1

//go:generate go tool -modfile=../../../../tools.mod deepcopy-gen --output-file=zz_generated.deepcopy.go .
//go:generate ./crds.sh
