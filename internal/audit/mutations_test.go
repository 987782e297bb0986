//go:build !long

package audit

const mutations = 1_500
