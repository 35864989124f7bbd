package dev.windlass.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The second example of docs/testing-java.md. */
@ExtendWith(WindlassExtension.class)
class OperatorTest {
    /** Answers each config map that has a name and no greeting. */
    @ControllerConfiguration
    static class Greeter implements Reconciler<ConfigMap> {
        @Override
        public UpdateControl<ConfigMap> reconcile(ConfigMap map, Context<ConfigMap> context) {
            Map<String, String> data = map.getData();
            if (data == null || !data.containsKey("name") || data.containsKey("greeting")) {
                return UpdateControl.noUpdate();
            }
            data.put("greeting", "Hello " + data.get("name"));
            context.getClient().resource(map).update();
            return UpdateControl.noUpdate();
        }
    }

    @Test
    void aNameIsAnswered(WindlassCluster cluster) {
        Config config = Config.fromKubeconfig(cluster.kubeconfig().toFile());
        try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
            Operator operator = new Operator(options -> options.withKubernetesClient(client));
            operator.register(new Greeter());
            operator.start();
            client.resource(new ConfigMapBuilder()
                            .withNewMetadata().withName("ada").endMetadata()
                            .withData(Map.of("name", "Ada"))
                            .build())
                    .create();
            ConfigMap answered = client.configMaps().withName("ada")
                    .waitUntilCondition(map -> map.getData().containsKey("greeting"), 30, TimeUnit.SECONDS);
            assertEquals("Hello Ada", answered.getData().get("greeting"));
            operator.stop();
        }
    }
}
