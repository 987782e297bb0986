// Package all is the list of the installers that this build knows. A new one is its
// folder and one line here.
package all

import (
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/gocmd"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/npm"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/pip"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/pnpm"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/uv"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
)

// Installers returns every installer, in the order in which help texts name them.
func Installers() []installer.Installer {
	return []installer.Installer{
		pip.New(),
		uv.New(),
		npm.New(),
		pnpm.New(),
		gocmd.New(),
	}
}

// Asked tells which ecosystem a client's command is of, and what follows the install itself,
// if it is one; "" for any other command.
func Asked(argv []string) (pkgref.Ecosystem, []string) {
	known := Installers()
	for _, i := range known {
		if words, ok := i.Asks(argv); ok {
			return i.Ecosystem(), words
		}
	}
	for _, i := range known {
		if i.Name() == installer.Program(argv) {
			return i.Ecosystem(), nil
		}
	}
	return "", nil
}

// Clients are those that can be asked for the registries that they use.
func Clients() discover.Clients {
	var clients discover.Clients
	for _, i := range Installers() {
		if d, ok := i.(installer.Discoverer); ok {
			clients = append(clients, d.Discover())
		}
	}
	return clients
}

// SourceBuilder builds source distributions of an ecosystem; false: nobody does.
func SourceBuilder(of pkgref.Ecosystem) (installer.SourceBuilder, bool) {
	for _, i := range Installers() {
		if b, ok := i.(installer.SourceBuilder); ok && i.Ecosystem() == of {
			return b, true
		}
	}
	return nil, false
}
