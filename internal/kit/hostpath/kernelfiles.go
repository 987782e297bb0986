package hostpath

import "slices"

// kernelTypes are the types of file systems whose files are interfaces of the host's kernel, wherever they are mounted.
func kernelTypes() []string {
	return []string{
		"proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "cpuset", "mqueue", "debugfs", "tracefs", "securityfs", "configfs", "bpf",
		"pstore", "efivarfs", "fusectl", "binfmt_misc", "selinuxfs", "smackfs", "resctrl", "rpc_pipefs", "nfsd", "nsfs", "functionfs", "xenfs",
	}
}

// IsKernels tells whether what is mounted is an interface of the host's kernel, by the type of its file system.
func (m Mounted) IsKernels() bool { return slices.Contains(kernelTypes(), m.Type) }
