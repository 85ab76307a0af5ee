#!/bin/sh
# clients.sh: writes the clientset, the listers and the informers of our kinds. Each
# folder is made anew, so that none keeps a file of a kind that is no more.
set -eu
cd "$(dirname "$0")"
here=heteroflow.io/heteroflow/pkg/generated
apis=heteroflow.io/heteroflow/pkg/apis
rm -rf clientset listers informers
# The tools would say, and ask the API server for, epoches.
tool() {
	tool=$1
	shift
	go tool -modfile=../../tools.mod "$tool" --plural-exceptions Epoch:Epochs "$@"
}
tool client-gen --fake-clientset=false --clientset-name versioned --input-base $apis --input heteroflow/v1alpha1 \
	--output-dir clientset --output-pkg $here/clientset
tool lister-gen --output-dir listers --output-pkg $here/listers $apis/heteroflow/v1alpha1
tool informer-gen --single-directory --versioned-clientset-package $here/clientset/versioned \
	--listers-package $here/listers --output-dir informers --output-pkg $here/informers $apis/heteroflow/v1alpha1
