package e2b

import (
	"maps"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// What clients call metadata are a sandbox's labels. Those with this prefix are
// ours: what this wire has to remember of a sandbox.
const reserved = "cofferdam."

const (
	labelPolicy     = reserved + "policy"        // the named policy
	labelTemplate   = reserved + "template"      // the template as the client called it
	labelPrivate    = reserved + "private_ports" // "true": its ports need the traffic token
	labelAutoResume = reserved + "auto_resume"   // "true": whoever uses it wakes it when it is paused
	metadataPolicy  = "policy"                   // in a client's metadata: the named policy that it chooses
)

// metadata is what a client gave and gets back.
func metadata(labels map[string]string) map[string]string {
	own := maps.Clone(labels)
	maps.DeleteFunc(own, func(k, _ string) bool { return strings.HasPrefix(k, reserved) })
	if own == nil {
		return map[string]string{}
	}
	return own
}

// checkMetadata refuses what is ours.
func checkMetadata(m map[string]string) error {
	for k := range m {
		if strings.HasPrefix(k, reserved) {
			return fault.Invalid("metadata: names that begin with %q are the server's own, and %.80q is one", reserved, k)
		}
	}
	return nil
}

// publicTraffic tells whether a sandbox's published ports need no token.
func publicTraffic(labels map[string]string) bool { return labels[labelPrivate] != "true" }

// AutoResumes tells whether a paused sandbox is to go on when somebody uses it.
func AutoResumes(labels map[string]string) bool { return labels[labelAutoResume] == "true" }
