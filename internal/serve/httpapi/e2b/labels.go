package e2b

import (
	"maps"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// The metadata of clients is a sandbox's labels. These are ours: what this wire has to
// remember of a sandbox.
const (
	labelPolicy     = backend.OwnLabels + "policy"        // the named policy
	labelTemplate   = backend.OwnLabels + "template"      // the template as the client called it
	labelPrivate    = backend.OwnLabels + "private_ports" // "true": its ports need the traffic token
	labelAutoResume = backend.OwnLabels + "auto_resume"   // "true": whoever uses it wakes it when it is paused
)

// metadataPolicy is in a client's metadata: the named policy that it chooses.
const metadataPolicy = "policy"

// metadata is what a client gave and gets back.
func metadata(labels map[string]string) map[string]string {
	own := maps.Clone(labels)
	maps.DeleteFunc(own, func(k, _ string) bool { return strings.HasPrefix(k, backend.OwnLabels) })
	if own == nil {
		return map[string]string{}
	}
	return own
}

// checkMetadata refuses what is ours.
func checkMetadata(m map[string]string) error {
	for k := range m {
		if strings.HasPrefix(k, backend.OwnLabels) {
			return fault.Invalid("metadata: names that begin with %q are the server's own, and %.80q is one", backend.OwnLabels, k)
		}
	}
	return nil
}

// publicTraffic tells whether a sandbox's published ports need no token.
func publicTraffic(labels map[string]string) bool { return labels[labelPrivate] != "true" }

// AutoResumes tells whether a paused sandbox is to go on when somebody uses it.
func AutoResumes(labels map[string]string) bool { return labels[labelAutoResume] == "true" }
