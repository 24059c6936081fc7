//! The sender and the receiver of quinn.

use std::net::SocketAddr;
use std::sync::Arc;

use quinn::{ClientConfig, Endpoint, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::settings::Settings;
use crate::{CHUNK, Failure, Identity};

fn transport(settings: Settings) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    if let Some(window) = settings.window {
        config
            .stream_receive_window(VarInt::from_u32(window))
            .receive_window(VarInt::from_u32(window))
            .send_window(u64::from(window));
    }
    if let Some(mtu) = settings.mtu {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(mtu);
        config.mtu_discovery_config(Some(discovery));
    }
    if let Some(gso) = settings.gso {
        config.enable_segmentation_offload(gso);
    }
    Arc::new(config)
}

fn endpoint_config(settings: Settings) -> Result<quinn::EndpointConfig, Failure> {
    let mut config = quinn::EndpointConfig::default();
    if let Some(mtu) = settings.mtu {
        config.max_udp_payload_size(mtu)?;
    }
    Ok(config)
}

fn endpoint(server: Option<ServerConfig>, settings: Settings) -> Result<Endpoint, Failure> {
    let socket = std::net::UdpSocket::bind(("127.0.0.1", 0))?;
    Ok(Endpoint::new(
        endpoint_config(settings)?,
        server,
        socket,
        Arc::new(quinn::TokioRuntime),
    )?)
}

pub async fn receive(identity: &Identity, settings: Settings) -> Result<(), Failure> {
    let key = PrivatePkcs8KeyDer::from(identity.key.serialize_der());
    let certificate = CertificateDer::from(identity.certificate.der().to_vec());
    let mut config = ServerConfig::with_single_cert(vec![certificate], key.into())?;
    config.transport_config(transport(settings));
    let endpoint = endpoint(Some(config), settings)?;
    println!("{}", endpoint.local_addr()?);
    let connection = endpoint.accept().await.ok_or("no connection")?.await?;
    let (mut reply, mut stream) = connection.accept_bi().await?;
    let mut received = 0_u64;
    while let Some(chunk) = stream.read_chunk(CHUNK, true).await? {
        received += chunk.bytes.len() as u64;
    }
    // The sender stops its clock when it receives this reply.
    reply.write_all(&received.to_be_bytes()).await?;
    reply.finish()?;
    connection.closed().await;
    Ok(())
}

pub async fn send(to: SocketAddr, certificate: &str, mib: usize, settings: Settings) -> Result<(), Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes())?)?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport(settings));
    let mut endpoint = endpoint(None, settings)?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(to, "localhost")?.await?;
    let (mut stream, mut answer) = connection.open_bi().await?;
    let chunk = bytes::Bytes::from(vec![0x5a; CHUNK]);
    for _ in 0..(mib << 20) / CHUNK {
        stream.write_chunk(chunk.clone()).await?;
    }
    stream.finish()?;
    if answer.read_to_end(8).await? != ((mib as u64) << 20).to_be_bytes() {
        return Err("bytes are missing".into());
    }
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}
