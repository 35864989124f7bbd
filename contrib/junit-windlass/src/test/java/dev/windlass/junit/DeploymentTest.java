package dev.windlass.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The first example of docs/testing-java.md. */
@ExtendWith(WindlassExtension.class)
class DeploymentTest {
    @Test
    void aDeploymentGetsItsPods(WindlassCluster cluster) {
        Config config = Config.fromKubeconfig(cluster.kubeconfig().toFile());
        try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
            client.resource(deployment("web", 2)).create();
            client.apps().deployments().withName("web").waitUntilReady(30, TimeUnit.SECONDS);
            assertEquals(2, client.pods().withLabel("app", "web").list().getItems().size());
        }
    }

    private static Deployment deployment(String name, int replicas) {
        Map<String, String> labels = Map.of("app", name);
        return new DeploymentBuilder()
                .withNewMetadata().withName(name).endMetadata()
                .withNewSpec()
                .withReplicas(replicas)
                .withNewSelector().withMatchLabels(labels).endSelector()
                .withNewTemplate()
                .withNewMetadata().withLabels(labels).endMetadata()
                .withNewSpec().addNewContainer().withName("web").withImage("nginx").endContainer().endSpec()
                .endTemplate()
                .endSpec()
                .build();
    }
}
