// For each line "CA PORT HOST" of standard input: a TLS connection to the port
// of 127.0.0.1, as to the host.
const tls = require('tls')
const fs = require('fs')

const judge = (ca, port, host) => new Promise((resolve) => {
	const name = /[:]|^[0-9.]+$/.test(host) ? {} : { servername: host }
	const socket = tls.connect({ host: '127.0.0.1', port, ca: fs.readFileSync(ca), ...name,
		checkServerIdentity: (_, certificate) => tls.checkServerIdentity(host, certificate) })
	socket.on('secureConnect', () => { socket.destroy(); resolve('taken') })
	socket.on('error', (e) => resolve('refused: ' + e.message))
})

async function all() {
	for (const line of fs.readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
		const [ca, port, host] = line.split(' ')
		console.log(await judge(ca, Number(port), host))
	}
}
all()
