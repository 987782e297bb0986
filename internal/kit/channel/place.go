package channel

// Where the agent keeps the certificates that clients inside trust.
const (
	// BundleFile has the template's certificates and the installation's own.
	BundleFile = "/run/cofferdam/tls/bundle.pem"
	// CAFile has the installation's own alone.
	CAFile = "/run/cofferdam/tls/ca.pem"
)

// SideDownloads is the address under which the gateway says why it serves no toolchains,
// browsers and the like.
const SideDownloads = "https://downloads.cofferdam.internal/"
