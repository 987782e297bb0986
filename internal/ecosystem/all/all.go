// Package all is the list of the ecosystems that this build speaks. A new one
// is its folder and one line here.
package all

import (
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem/golang"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem/npm"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem/pypi"
)

// Protocols returns every protocol.
func Protocols() []ecosystem.Protocol {
	return []ecosystem.Protocol{
		pypi.New(),
		npm.New(),
		golang.New(),
	}
}
