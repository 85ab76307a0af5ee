// Package generated holds typed clients, listers and informers for the kinds of
// group heteroflow.io that the API server stores. Everything below it is generated
// from package v1alpha1 and is written anew by make generate: there is nothing to
// edit. There are no fakes: what uses these clients is tested on a real API server.
//
// A client's configuration must have it speak JSON: in protobuf, which those of
// Kubernetes' own kinds may speak, there are no such objects.
package generated

//go:generate ./clients.sh
