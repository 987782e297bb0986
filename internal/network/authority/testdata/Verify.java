import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

/** For each line "CA PORT HOST" of standard input: a TLS connection to the port of 127.0.0.1, as to the host. */
public class Verify {
	public static void main(String[] none) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		for (String line; (line = in.readLine()) != null; ) {
			String[] words = line.split(" ");
			System.out.println(judge(words[0], Integer.parseInt(words[1]), words[2]));
		}
	}

	static String judge(String ca, int port, String host) throws Exception {
		KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
		trusted.load(null, null);
		try (FileInputStream file = new FileInputStream(ca)) {
			trusted.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
		}
		TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		factory.init(trusted);
		SSLContext context = SSLContext.getInstance("TLS");
		context.init(null, factory.getTrustManagers(), null);
		java.net.Socket raw = new java.net.Socket("127.0.0.1", port);
		try (SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket(raw, host, port, true)) {
			SSLParameters parameters = socket.getSSLParameters();
			parameters.setEndpointIdentificationAlgorithm("HTTPS");
			socket.setSSLParameters(parameters);
			socket.startHandshake();
			return "taken";
		} catch (javax.net.ssl.SSLException e) {
			return "refused: " + e.getMessage();
		}
	}
}
