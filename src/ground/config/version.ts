/** The kubelet release whose behaviour nodelet follows, and which it reports to the API server. */
export const KUBERNETES_VERSION = "v1.34.11";

export const NODELET_VERSION = "0.1.0";
