// Package all is the list of the installers that this build knows. A new one is its
// folder and one line here.
package all

import (
	"github.com/cofferdam-dev/cofferdam/internal/installer"
	"github.com/cofferdam-dev/cofferdam/internal/installer/gocmd"
	"github.com/cofferdam-dev/cofferdam/internal/installer/npm"
	"github.com/cofferdam-dev/cofferdam/internal/installer/pip"
	"github.com/cofferdam-dev/cofferdam/internal/installer/pnpm"
	"github.com/cofferdam-dev/cofferdam/internal/installer/uv"
)

// Installers returns every installer, in the order in which help texts name them.
func Installers() []installer.Installer {
	return []installer.Installer{pip.New(), uv.New(), npm.New(), pnpm.New(), gocmd.New()}
}
